// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/item/queue_names.h"
#include "muster/rpc/status.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::initiator::submit {

namespace {

// The deadline of one call to the agent: a submit waits for it.
constexpr absl::Duration kAgentTime = absl::Milliseconds(500);
// A client that tries again sooner than kSoonest finds the same estimate; one that tries later than
// kLatest may find that new processors have been idle.
constexpr absl::Duration kSoonest = absl::Seconds(1);
constexpr absl::Duration kLatest = absl::Minutes(5);
// As good as never, and it still fits in seconds.
constexpr absl::Duration kLongestDrain = absl::Hours(24 * 365 * 100);
// The most messages that one queue adds: the sum over all queues does not overflow.
constexpr int64_t kMostWaiting = int64_t{1} << 50;

absl::Duration WholeSeconds(absl::Duration duration) {
  return absl::Ceil(duration, absl::Seconds(1));
}

absl::Status TooLong(const job::JobDefinition& job, absl::Duration drain, absl::Duration limit) {
  const absl::Duration retry = std::clamp(WholeSeconds(drain - limit), kSoonest, kLatest);
  absl::Status refused = absl::ResourceExhaustedError(absl::StrCat(
      "job '", job.name, "': what waits already would take ",
      base::DurationToString(WholeSeconds(drain)), ", and its queue.max_drain is ",
      base::DurationToString(limit), ": submit again in ", base::DurationToString(retry)));
  refused = rpc::WithRetryAfter(std::move(refused), retry);
  return rpc::WithReason(
      std::move(refused),
      {"DRAIN_TOO_LONG",
       {{"job", job.name},
        {"estimate_seconds", absl::StrCat(absl::ToInt64Seconds(WholeSeconds(drain)))},
        {"limit_seconds", absl::StrCat(absl::ToInt64Seconds(WholeSeconds(limit)))}}});
}

}  // namespace

absl::Status Admission::Admit(const job::JobDefinition& job) {
  if (!job.queue.max_drain.has_value()) return absl::OkStatus();
  const int64_t waiting = Waiting(job);
  if (waiting == 0) return absl::OkStatus();
  const std::optional<absl::Duration> drain = DrainTime(job, waiting);
  if (!drain.has_value() || *drain <= *job.queue.max_drain) return absl::OkStatus();
  return TooLong(job, *drain, *job.queue.max_drain);
}

// A missing queue holds nothing. A queue that cannot be read counts as empty, too: to refuse a
// batch without need is worse than to take in one too many.
int64_t Admission::Waiting(const job::JobDefinition& job) {
  int64_t waiting = 0;
  for (const queue::QueueId& id :
       item::InputQueues(deps_.account, job.name, job.queue.partitions)) {
    const absl::StatusOr<queue::QueueStats> stats = deps_.queues->Stats(id);
    if (stats.ok()) waiting += std::clamp<int64_t>(stats->stored(), 0, kMostWaiting);
  }
  if (deps_.held_back) {
    const int64_t held_back =
        deps_.held_back(item::InputQueue(deps_.account, job.name, /*partition=*/0));
    waiting += std::clamp<int64_t>(held_back, 0, kMostWaiting);
  }
  return waiting;
}

std::optional<absl::Duration> Admission::DrainTime(const job::JobDefinition& job, int64_t waiting) {
  if (const auto told = AgentsDrainTime(job)) return std::min(*told, kLongestDrain);
  const double items_per_second = deps_.throughput->ItemsPerSecond(job.name);
  if (!(items_per_second > 0)) return std::nullopt;
  return std::min(absl::Seconds(static_cast<double>(waiting) / items_per_second), kLongestDrain);
}

std::optional<absl::Duration> Admission::AgentsDrainTime(const job::JobDefinition& job) {
  using Stub = v1::ScalingService::Stub;
  v1::SimulateRequest simulate;
  // All partitions belong to the target of the first one.
  simulate.set_queue(item::InputQueue(deps_.account, job.name, 0).name);
  simulate.set_items(1);  // one more item is done when all before it are
  const auto simulated =
      deps_.agent->Unary<v1::SimulateResponse>(&Stub::Simulate, simulate, kAgentTime);
  if (!simulated.ok() || !simulated->has_finish()) return std::nullopt;
  // The estimate of an agent that only watches counts replicas that it will not start.
  const auto agent =
      deps_.agent->Unary<v1::GetAgentResponse>(&Stub::GetAgent, v1::GetAgentRequest(), kAgentTime);
  if (!agent.ok() || !agent->leads() || agent->mode() != v1::SCALING_MODE_ACT) return std::nullopt;
  return std::max(base::FromProto(simulated->finish()) - deps_.clock->Now(), absl::ZeroDuration());
}

}  // namespace muster::initiator::submit
