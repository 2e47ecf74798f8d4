// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/queue_metrics.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/job/job_file.h"
#include "muster/telemetry/catalogue.h"

namespace muster::initiator {
namespace {

// What the partitions of one logical queue hold together.
struct Depth {
  int64_t backlog = 0;
  int64_t in_flight = 0;
};

void SetDepth(const std::string& queue, const queue::QueueStats& stats,
              telemetry::Samples* samples) {
  samples->Set(telemetry::kQueueBacklog, {queue}, static_cast<double>(stats.ready + stats.delayed));
  samples->Set(telemetry::kQueueInFlight, {queue}, static_cast<double>(stats.in_flight));
  samples->Set(telemetry::kQueuePoison, {queue}, static_cast<double>(stats.poison));
  samples->Set(telemetry::kQueueOldestAge, {queue}, absl::ToDoubleSeconds(stats.oldest_age));
}

}  // namespace

QueueMetrics::QueueMetrics(QueueSources sources, telemetry::Registry* registry)
    : sources_(std::move(sources)),
      reading_(telemetry::ReadAtScrape(
          registry, "queues",
          {telemetry::kQueueBacklog.entry(), telemetry::kQueueInFlight.entry(),
           telemetry::kQueuePoison.entry(), telemetry::kQueueOldestAge.entry(),
           telemetry::kQueueDrainTime.entry(), telemetry::kSlaTarget.entry()},
          [this](telemetry::Samples* samples) { return Read(samples); })) {}

absl::Status QueueMetrics::Read(telemetry::Samples* samples) {
  if (!sources_.is_connected()) return absl::UnavailableError("there is no connection");
  const absl::Duration deadline = sources_.clock->Monotonic() + kQueueReadTime;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::JobSummary> jobs, sources_.jobs->Summaries());
  std::map<std::string, std::string> by_queue;
  for (const job::JobSummary& job : jobs) by_queue[item::LogicalInput(job.name)] = job.name;
  ReadPromises(jobs, deadline, samples);
  return ReadQueues(by_queue, deadline, samples);
}

absl::Status QueueMetrics::ReadQueues(const std::map<std::string, std::string>& jobs,
                                      absl::Duration deadline, telemetry::Samples* samples) {
  queue::ListQueuesRequest request;
  request.account = sources_.account;
  request.max_results = kQueuesAtATime;
  std::map<std::string, Depth> depths;
  std::vector<queue::QueueInfo> queues;
  do {
    MUSTER_ASSIGN_OR_RETURN(queues, sources_.queues->ListQueues(request));
    for (const queue::QueueInfo& queue : queues) {
      request.after = queue.id.name;
      if (sources_.clock->Monotonic() >= deadline) {
        return absl::DeadlineExceededError("there is no time for all queues");
      }
      const absl::StatusOr<queue::QueueStats> stats = sources_.queues->Stats(queue.id);
      if (absl::IsNotFound(stats.status())) continue;  // it was deleted meanwhile
      MUSTER_RETURN_IF_ERROR(stats.status());
      const std::string name = item::LogicalName(queue.id.name);
      SetDepth(name, *stats, samples);
      depths[name].backlog += stats->ready + stats->delayed;
      depths[name].in_flight += stats->in_flight;
    }
  } while (queues.size() == static_cast<size_t>(request.max_results));
  for (const auto& [name, depth] : depths) {
    const auto job = jobs.find(name);
    const double rate = job == jobs.end() ? 0 : sources_.items_per_second(job->second);
    if (!(rate > 0)) continue;
    samples->Set(telemetry::kQueueDrainTime, {name},
                 static_cast<double>(depth.backlog + depth.in_flight) / rate);
  }
  return absl::OkStatus();
}

// A definition that cannot be read now is read at a later scrape.
void QueueMetrics::ReadPromises(const std::vector<job::JobSummary>& jobs, absl::Duration deadline,
                                telemetry::Samples* samples) {
  std::map<std::string, Promise> promises;
  for (const job::JobSummary& job : jobs) {
    const auto known = promises_.find(job.name);
    if (known != promises_.end() && known->second.updated == job.updated) {
      promises.insert(*known);
    } else if (sources_.clock->Monotonic() < deadline) {
      const absl::StatusOr<job::JobEntry> entry = sources_.jobs->Get(job.name);
      if (!entry.ok()) continue;
      const auto definition = job::ParseJob(entry->definition, "");
      const absl::Duration sla = definition.ok()
                                     ? definition->sla_max.value_or(absl::InfiniteDuration())
                                     : absl::InfiniteDuration();
      promises[job.name] = {entry->updated, sla};
    }
  }
  promises_ = std::move(promises);
  for (const auto& [job, promise] : promises_) {
    if (promise.sla == absl::InfiniteDuration()) continue;
    samples->Set(telemetry::kSlaTarget, {item::LogicalInput(job)},
                 absl::ToDoubleSeconds(promise.sla));
  }
}

}  // namespace muster::initiator
