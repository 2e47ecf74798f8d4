// SPDX-License-Identifier: Apache-2.0

// How a ProcessorService makes what works for a job, and puts it in the place of what did.
#include <chrono>
#include <future>
#include <utility>
#include <variant>

#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/listener/listener.h"
#include "muster/queue/queue_store.h"
#include "services/processor/processor_service.h"

namespace muster::processor {

namespace {

bool IsSame(const job::JobSummary& a, const job::JobSummary& b) {
  return a.revision == b.revision && a.updated == b.updated;
}

}  // namespace

void ProcessorService::Serve(const job::JobSummary& job) {
  {
    base::MutexLock lock(&mu_);
    if (!IsWantedLocked(job.name)) return;
  }
  const ServedPtr old = ServedAs(job.name);
  if (old != nullptr && IsSame(old->as_of, job)) {
    return job_troubles_.CanWork(old->as_of);
  }
  const auto made = std::make_shared<Served>();
  if (const absl::Status status = Make(job, made); !status.ok()) {
    look_soon_ |= base::IsTransient(status);
    return job_troubles_.Report(job.name,
                                {base::InWords(status), std::nullopt, IsOthers(*made, status)});
  }
  job_troubles_.CanWork(made->as_of);
  Replace(old, made);
}

// A program with its own handlers need not have the handlers of all jobs.
bool ProcessorService::IsOthers(const Served& made, const absl::Status& status) {
  return absl::IsNotFound(status) &&
         std::holds_alternative<job::LinkedHandlerSpec>(made.definition.handler);
}

absl::Status ProcessorService::Make(const job::JobSummary& job, const ServedPtr& made) {
  MUSTER_ASSIGN_OR_RETURN(const job::JobEntry entry, jobs_->Get(job.name));
  made->as_of = {entry.name, entry.revision, entry.updated};
  MUSTER_ASSIGN_OR_RETURN(made->definition, job::ParseJob(entry.definition, ""));
  MUSTER_ASSIGN_OR_RETURN(const JobHandler handler,
                          FindHandler(made->definition, *handlers_, AccessOf(made), clock_));
  made->health = handler.health;
  MUSTER_RETURN_IF_ERROR(CreateQueues(made->definition));
  Options options;
  options.account = options_.account;
  options.instance = options_.instance;
  options.threads = ThreadsFor(job.name);
  options.stops_patiently = true;
  options.isolated_handlers = handler.isolated;
  options.health = handler.health;
  options.restarts = handler.restarts;
  options.revisions = revisions_.get();
  MUSTER_ASSIGN_OR_RETURN(options.min_partitions, CountPartitions(made->definition));
  MUSTER_ASSIGN_OR_RETURN(made->processor, Processor::Create(&made->definition, handler.factory,
                                                             handler.version, deps_, options));
  return absl::OkStatus();
}

HandlerAccess ProcessorService::AccessOf(const ServedPtr& served) {
  HandlerAccess access = options_.handlers;
  access.draining = served->draining.get_token();
  access.on_refused = [this, weak = std::weak_ptr<Served>(served)](const absl::Status& why) {
    base::MutexLock lock(&mu_);
    refused_.push_back({weak, why});
    changed_.NotifyAll();
  };
  return access;
}

int ProcessorService::ThreadsFor(const std::string& job) const {
  if (options_.pools.empty()) return options_.threads;
  for (const JobPool& pool : options_.pools) {
    if (pool.job == job) return pool.threads > 0 ? pool.threads : options_.threads;
  }
  return 0;
}

// The processor creates the queues because no batch may have been submitted to the job yet.
absl::Status ProcessorService::CreateQueues(const job::JobDefinition& job) const {
  std::vector<queue::QueueId> queues =
      item::InputQueues(options_.account, job.name, job.queue.partitions);
  queues.push_back(item::OutputQueue(options_.account, job.name, 0));
  for (const queue::QueueId& queue : queues) {
    const absl::Status created = deps_.queues->CreateQueue(queue, {});
    if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  }
  queues.pop_back();  // the last is the output queue, whose lease time the job does not set
  for (const queue::QueueId& queue : queues) {
    MUSTER_RETURN_IF_ERROR(queue::SetVisibility(deps_.queues, queue, job.queue.visibility));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ProcessorService::CountPartitions(const job::JobDefinition& job) const {
  int partitions = job.queue.partitions;
  while (partitions < listener::kMaxPartitions) {
    const absl::Status there =
        deps_.queues->GetMetadata(item::InputQueue(options_.account, job.name, partitions))
            .status();
    if (absl::IsNotFound(there)) break;
    MUSTER_RETURN_IF_ERROR(there);
    ++partitions;
  }
  return partitions;
}

void ProcessorService::Replace(const ServedPtr& old, const ServedPtr& made) {
  const std::string& job = made->as_of.name;
  if (old != nullptr && old->processor->listener().phase() == listener::ListenerPhase::kPaused) {
    made->processor->listener().Pause();
  }
  bool parked = false;
  {
    base::MutexLock lock(&mu_);
    if (!IsWantedLocked(job)) return;
    served_[job] = made;
    parked = parked_;
    if (parked) {
      // Workers that start take what has been made by then.
      made->warming = std::async(
          std::launch::async, [this, processor = made->processor.get(), threads = ThreadsFor(job),
                               draining = made->draining.get_token()] {
            processor->Warm(threads,
                            [&] { return !draining.stop_requested() && !ParkedFor().empty(); });
          });
    }
  }
  // Other threads see the processor from here on, and may have started or stopped it already.
  if (!parked) {
    const absl::Status begun =
        Begin(made, old == nullptr ? "works for a job" : "works for a job that has changed");
    look_soon_ |= base::IsTransient(begun);
  }
  if (old != nullptr) DrainAside(old);
}

absl::Status ProcessorService::Begin(const ServedPtr& served, absl::string_view what) {
  const std::string& job = served->as_of.name;
  if (const absl::Status started = served->processor->Start(); !started.ok()) {
    job_troubles_.Report(job, {base::InWords(started)});
    Forget(served);
    return started;
  }
  base::Log(base::kInfo, what, {{"job", job}, {"revision", served->as_of.revision}});
  return absl::OkStatus();
}

}  // namespace muster::processor
