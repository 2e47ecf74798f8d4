// SPDX-License-Identifier: Apache-2.0
#include "services/processor/processor_service.h"

#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/handler/health_troubles.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/listener/listener.h"
#include "muster/queue/queue_store.h"

namespace muster::processor {

namespace {

// The wait after a look in which a store did not answer; doubles with each further one.
constexpr absl::Duration kMinPatience = absl::Milliseconds(100);

void WarnIfCutOff(const absl::Status& stopped) {
  base::LogUnlessOk(base::kWarning, "some work was cut off when its workers stopped", stopped);
}

bool IsSame(const job::JobSummary& a, const job::JobSummary& b) {
  return a.revision == b.revision && a.updated == b.updated;
}

ServiceOptions Named(ServiceOptions options) {
  options.handlers.instance = options.instance;
  options.handlers.on_refused = nullptr;
  return options;
}

}  // namespace

ProcessorService::ProcessorService(const handler::HandlerRegistry* handlers, ServiceOptions options,
                                   base::Clock* clock)
    : handlers_(handlers),
      options_(Named(std::move(options))),
      clock_(clock),
      slow_items_(clock),
      parked_(!options_.standby.empty()) {}

ProcessorService::~ProcessorService() {
  Stop(absl::ZeroDuration());
  Close();
}

absl::Status ProcessorService::Start(const Dependencies& dependencies, job::JobRegistry* jobs) {
  MUSTER_CHECK(!thread_.joinable(), options_.instance, " is started twice");
  deps_ = dependencies;
  deps_.slow_items = &slow_items_;
  jobs_ = jobs;
  revisions_ = std::make_unique<RevisionCache>(jobs, handlers_, deps_.blobs, options_.handlers,
                                               clock_, deps_.slow_items, deps_.metrics);
  pool_metrics_ = std::make_unique<PoolMetrics>(this, deps_.metrics);
  // Subscribe before the first look, so that no change falls between the two.
  MUSTER_ASSIGN_OR_RETURN(subscription_,
                          deps_.bus->Subscribe([this](const auto& event) { OnEvent(event); }));
  if (const absl::Status looked = Look(); !looked.ok()) {
    subscription_.reset();
    return looked;
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void ProcessorService::OnEvent(const bus::InterRoleCommunicationEvent& event) {
  const auto* const cancelled = std::get_if<bus::BatchCancelledEvent>(&event.payload);
  const bool gives_up = cancelled != nullptr && deps_.cancelled != nullptr;
  if (gives_up) deps_.cancelled->Note(cancelled->batch);
  const bool look = std::holds_alternative<bus::JobChangedEvent>(event.payload);
  if (!gives_up && !look) return;
  base::MutexLock lock(&mu_);
  look_ |= look;
  if (gives_up) cancelled_.push_back(cancelled->batch);
  changed_.NotifyAll();
}

void ProcessorService::Run() {
  absl::Duration due = clock_->Monotonic() + NextLookIn();
  while (const std::optional<News> news = AwaitNews(due)) {
    for (const uint64_t batch : news->cancelled) GiveUp(batch);
    for (const Refusal& refusal : news->refused) StopRefused(refusal);
    if (!news->look) continue;
    if (const absl::Status looked = Look(); !looked.ok()) {
      base::Log(base::kWarning, "the jobs cannot be looked at; work goes on for those known",
                {{"why", looked.ToString()}});
      look_soon_ = true;
    }
    due = clock_->Monotonic() + NextLookIn();
  }
}

std::optional<ProcessorService::News> ProcessorService::AwaitNews(absl::Duration due) {
  News news;
  base::MutexLock lock(&mu_);
  while (!stopping_ && !look_ && cancelled_.empty() && refused_.empty()) {
    if (clock_->WaitUntil(&changed_, &mu_, due)) break;
  }
  if (stopping_) return std::nullopt;
  news.look = std::exchange(look_, false) || clock_->Monotonic() >= due;
  news.cancelled.swap(cancelled_);
  news.refused.swap(refused_);
  return news;
}

absl::Duration ProcessorService::NextLookIn() {
  hasty_looks_ = std::exchange(look_soon_, false) ? hasty_looks_ + 1 : 0;
  if (hasty_looks_ == 0) return options_.look_interval;
  return base::ExponentialBackoff(hasty_looks_, kMinPatience, options_.look_interval);
}

void ProcessorService::GiveUp(uint64_t batch) {
  deps_.cancelled->StopRunning(batch);
  base::LogUnlessOk(base::kWarning, "a cancellation was not acknowledged",
                    deps_.bus->Publish({options_.instance, bus::CancelAcknowledgedEvent{batch}}),
                    {{"batch", batch}});
}

// Runs on the service's thread, not on the refused worker's: stopping the listener waits for that
// worker. A refusal of an earlier revision (RevisionCache) stops nothing: the job's current
// revision may suit the handler.
void ProcessorService::StopRefused(const Refusal& refusal) {
  const ServedPtr served = refusal.served.lock();
  if (served == nullptr || ServedAs(served->as_of.name) != served) return;
  {
    base::MutexLock lock(&mu_);
    if (!IsWantedLocked(served->as_of.name)) return;
  }
  job_troubles_.Report(served->as_of.name, {base::InWords(refusal.why), served->as_of});
  Forget(served);
  DrainAside(served);
}

// Best effort: without it workers only waste work on cancelled and suspended batches.
void ProcessorService::RefreshCancelled() {
  if (deps_.cancelled != nullptr) {
    base::LogUnlessOk(base::kWarning, "items of cancelled batches may be worked on in vain",
                      deps_.cancelled->Refresh());
  }
  if (deps_.suspended != nullptr) {
    base::LogUnlessOk(base::kWarning, "items that no worker fits are given back again and again",
                      deps_.suspended->Refresh());
  }
}

absl::Status ProcessorService::Look() {
  ReapDrained();
  RefreshCancelled();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::JobSummary> jobs, jobs_->Summaries());
  std::set<std::string> gone;
  for (const JobListener& served : Listeners()) gone.insert(served.job);
  for (const job::JobSummary& job : jobs) {
    gone.erase(job.name);
    if (ThreadsFor(job.name) > 0) Serve(job);
  }
  for (const std::string& job : gone) Drop(job);
  job_troubles_.KeepOnly(jobs);
  return absl::OkStatus();
}

bool ProcessorService::IsWantedLocked(const std::string& job) const {
  return !stopping_ && !all_retired_ && !retired_.contains(job);
}

ProcessorService::ServedPtr ProcessorService::ServedAs(const std::string& job) {
  base::MutexLock lock(&mu_);
  const auto served = served_.find(job);
  return served == served_.end() ? nullptr : served->second;
}

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

// What is made from now on finds the service not parked, and what was made before is in served_. So
// each is started once.
void ProcessorService::Unpark() {
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    if (stopping_ || !std::exchange(parked_, false)) return;
    for (const auto& [job, one] : served_) {
      if (IsWantedLocked(job)) served.emplace(job, one);
    }
  }
  bool look = false;
  for (const auto& [job, one] : served) look |= base::IsTransient(Begin(one, "works for a job"));
  if (!look) return;
  base::MutexLock lock(&mu_);
  look_ = true;
  changed_.NotifyAll();
}

std::string ProcessorService::ParkedFor() {
  base::MutexLock lock(&mu_);
  return parked_ ? options_.standby : "";
}

void ProcessorService::Forget(const ServedPtr& served) {
  base::MutexLock lock(&mu_);
  const auto place = served_.find(served->as_of.name);
  if (place != served_.end() && place->second == served) served_.erase(place);
}

void ProcessorService::Drop(const std::string& job) {
  const ServedPtr served = ServedAs(job);
  if (served == nullptr) return;
  {
    base::MutexLock lock(&mu_);
    if (stopping_) return;
    served_.erase(job);
  }
  base::Log(base::kInfo, "a job was deleted; nothing works for it any more", {{"job", job}});
  DrainAside(served);
}

void ProcessorService::DrainAside(ServedPtr served) {
  served->draining.request_stop();
  drains_.push_back(std::async(std::launch::async,
                               [this, served = std::move(served), grace = options_.drain_grace] {
                                 served->AwaitWarm();
                                 WarnIfCutOff(served->processor->Stop(grace));
                                 pool_metrics_->NoteEnded(ListenerOf(served));
                               }));
}

void ProcessorService::ReapDrained() {
  drains_.remove_if([](const std::future<void>& drain) {
    return drain.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
}

void ProcessorService::Stop(absl::Duration grace) {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  subscription_.reset();
  if (thread_.joinable()) thread_.join();
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    served = served_;
  }
  for (const auto& [job, one] : served) one->draining.request_stop();
  for (const auto& [job, one] : served) one->AwaitWarm();
  WarnIfCutOff(StopAll(Listeners(), grace));
  drains_.clear();  // waits for each drain to end
}

void ProcessorService::Close() {
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    served.swap(served_);
  }
  served.clear();
  pool_metrics_.reset();
  revisions_.reset();
}

JobListener ProcessorService::ListenerOf(const ServedPtr& served) {
  return {served->as_of.name,
          {served, &served->processor->listener()},
          served->processor->handler_version(),
          served->processor->transactions_processed(),
          served->processor->starting()};
}

std::vector<JobListener> ProcessorService::Listeners() {
  base::MutexLock lock(&mu_);
  std::vector<JobListener> listeners;
  listeners.reserve(served_.size());
  for (const auto& [job, served] : served_) listeners.push_back(ListenerOf(served));
  return listeners;
}

// A refusal ends once the service has called the handler again and it is ready.
std::map<std::string, std::string> ProcessorService::OpenTroubles() {
  std::map<std::string, ServedPtr> served;
  {
    base::MutexLock lock(&mu_);
    served = served_;
  }
  for (const auto& [job, one] : served) {
    if (one->health->works()) job_troubles_.IsAccepted(job);
  }
  std::map<std::string, std::string> open_troubles = job_troubles_.OpenTroubles();
  for (const auto& [job, one] : served) {
    if (std::string why = one->health->why(); !why.empty())
      open_troubles.emplace(job, std::move(why));
  }
  return open_troubles;
}

void ProcessorService::Retire(absl::string_view job) {
  base::MutexLock lock(&mu_);
  if (job.empty()) {
    all_retired_ = true;
  } else {
    retired_.emplace(job);
  }
}

}  // namespace muster::processor
