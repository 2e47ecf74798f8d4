#include "services/scaling-agent/target_status.h"

#include <algorithm>

#include "muster/base/proto_time.h"
#include "services/scaling-agent/decision_record.h"

namespace muster::scaling_agent {
namespace {

// By when the oldest work must be done that the statistics show.
std::optional<absl::Time> OldestDeadline(const Snapshot& seen) {
  std::optional<absl::Time> oldest;
  for (const scaling::policy::QueueReading& reading : seen.observation.queues) {
    if (reading.ready + reading.in_flight == 0) continue;
    const absl::Time deadline = reading.at - reading.oldest_age + seen.options.sla;
    oldest = std::min(oldest.value_or(deadline), deadline);
  }
  return oldest;
}

void FillSeen(const Snapshot& seen, v1::ScalingTarget* status) {
  const scaling::policy::Observation& observation = seen.observation;
  *status->mutable_sla() = base::ToProto(seen.options.sla);
  *status->mutable_replicas() = CountsOf(observation.fleet);
  status->set_items_per_second(observation.estimates.items_per_second);
  *status->mutable_service_time() = base::ToProto(observation.estimates.service_time);
  *status->mutable_cold_start() = base::ToProto(observation.estimates.cold_start);
  for (const scaling::policy::QueueReading& reading : observation.queues) {
    status->set_ready(status->ready() + reading.ready);
    status->set_in_flight(status->in_flight() + reading.in_flight);
  }
  if (const auto deadline = OldestDeadline(seen)) {
    *status->mutable_oldest_deadline() = base::ToProto(*deadline);
  }
}

}  // namespace

v1::ScalingTarget StatusOf(const TargetReport& report) {
  v1::ScalingTarget status;
  status.set_target(report.target);
  for (const std::string& queue : report.queues) status.add_queues(queue);
  status.set_trouble(report.trouble);
  if (report.last.has_value()) *status.mutable_decision() = *report.last;
  if (report.override.has_value()) *status.mutable_override() = ToProto(*report.override);
  if (report.seen.has_value()) FillSeen(*report.seen, &status);
  return status;
}

}  // namespace muster::scaling_agent
