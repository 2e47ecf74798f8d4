// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/queue_depths.h"

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"

namespace muster::queue_gateway {
namespace {

void Set(const queue::QueueId& queue, const queue::QueueStats& stats, telemetry::Samples* samples) {
  const std::string name = queue.ToString();
  samples->Set(telemetry::kQueueBacklog, {name}, static_cast<double>(stats.ready + stats.delayed));
  samples->Set(telemetry::kQueueInFlight, {name}, static_cast<double>(stats.in_flight));
  samples->Set(telemetry::kQueuePoison, {name}, static_cast<double>(stats.poison));
  samples->Set(telemetry::kQueueOldestAge, {name}, absl::ToDoubleSeconds(stats.oldest_age));
}

}  // namespace

QueueDepths::QueueDepths(const auth::AccountSource* accounts, queue::QueueStore* queues,
                         const ServingState* state, base::Clock* clock,
                         telemetry::Registry* registry)
    : accounts_(accounts),
      queues_(queues),
      state_(state),
      clock_(clock),
      reading_(telemetry::ReadAtScrape(
          registry, "queues",
          {telemetry::kQueueBacklog.entry(), telemetry::kQueueInFlight.entry(),
           telemetry::kQueuePoison.entry(), telemetry::kQueueOldestAge.entry()},
          [this](telemetry::Samples* samples) { return Read(samples); })) {}

absl::Status QueueDepths::Read(telemetry::Samples* samples) const {
  if (!state_->is_ready()) return absl::UnavailableError("the gateway is not ready");
  const absl::Duration deadline = clock_->Monotonic() + kDepthReadTime;
  for (const std::string& account : accounts_->Names()) {
    MUSTER_RETURN_IF_ERROR(ReadAccount(account, deadline, samples));
  }
  return absl::OkStatus();
}

absl::Status QueueDepths::ReadAccount(const std::string& account, absl::Duration deadline,
                                      telemetry::Samples* samples) const {
  queue::ListQueuesRequest request;
  request.account = account;
  request.max_results = kQueuesAtATime;
  std::vector<queue::QueueInfo> queues;
  do {
    MUSTER_ASSIGN_OR_RETURN(queues, queues_->ListQueues(request));
    for (const queue::QueueInfo& queue : queues) {
      request.after = queue.id.name;
      if (clock_->Monotonic() >= deadline) {
        return absl::DeadlineExceededError("there is no time for all queues");
      }
      const absl::StatusOr<queue::QueueStats> stats = queues_->Stats(queue.id);
      if (absl::IsNotFound(stats.status())) continue;  // it was deleted meanwhile
      MUSTER_RETURN_IF_ERROR(stats.status());
      Set(queue.id, *stats, samples);
    }
  } while (queues.size() == static_cast<size_t>(request.max_results));
  return absl::OkStatus();
}

}  // namespace muster::queue_gateway
