// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/scaling_messages.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/scaling/policy/explain.h"

namespace muster::scaling_agent {

namespace {

using base::ToProto;

void SetTime(absl::Time time, google::protobuf::Timestamp* proto) { *proto = ToProto(time); }

void AddCandidate(std::string_view by, int replicas, v1::GetDecisionResponse* record) {
  v1::ScalingCandidate* const candidate = record->add_candidates();
  candidate->set_by(std::string(by));
  candidate->set_replicas(replicas);
}

// In the order in which they were weighed.
void AddCandidates(const Weighed& weighed, v1::GetDecisionResponse* record) {
  const scaling::policy::Bounds& bounds = weighed.observation.bounds;
  AddCandidate("work", weighed.by_policy.wanted, record);
  AddCandidate("present", weighed.observation.fleet.committed(), record);
  AddCandidate("min", bounds.min, record);
  AddCandidate("max", bounds.max, record);
  if (weighed.trace.budget_cap.has_value()) {
    AddCandidate("budget", *weighed.trace.budget_cap, record);
  }
  const std::string_view by_policy = scaling::policy::BindingName(weighed.by_policy.binding);
  AddCandidate(weighed.trace.reaction.empty() ? by_policy : "reaction", weighed.by_policy.replicas,
               record);
  if (weighed.override.has_value()) AddCandidate("override", weighed.override->replicas, record);
  AddCandidate(scaling::policy::BindingName(weighed.decided.binding), weighed.decided.replicas,
               record);
}

void FillReading(const scaling::policy::QueueReading& reading, v1::ScalingQueueReading* proto) {
  proto->set_queue(reading.queue);
  SetTime(reading.at, proto->mutable_taken());
  proto->set_ready(reading.ready);
  proto->set_in_flight(reading.in_flight);
  *proto->mutable_oldest_age() = ToProto(reading.oldest_age);
  proto->set_total_in(reading.total_in);
  proto->set_total_out(reading.total_out);
}

void FillInputs(const Weighed& weighed, v1::ScalingInputs* inputs) {
  const scaling::policy::Observation& seen = weighed.observation;
  inputs->set_min(seen.bounds.min);
  inputs->set_max(seen.bounds.max);
  *inputs->mutable_replicas() = CountsOf(seen.fleet);
  inputs->set_items_per_second(seen.estimates.items_per_second);
  *inputs->mutable_service_time() = ToProto(seen.estimates.service_time);
  *inputs->mutable_cold_start() = ToProto(seen.estimates.cold_start);
  inputs->set_cpu_share(seen.estimates.cpu_share);
  inputs->set_throttled_share(seen.estimates.throttled_share);
  for (const scaling::policy::QueueReading& reading : seen.queues)
    FillReading(reading, inputs->add_queues());
  inputs->set_range_by(weighed.trace.ruling.range_by);
  inputs->set_reaction(weighed.trace.reaction);
  if (weighed.trace.budget_cap.has_value()) inputs->set_budget_cap(*weighed.trace.budget_cap);
}

std::string ExplanationOf(const Weighed& weighed) {
  std::string text = scaling::policy::Explain(weighed.decided, weighed.observation);
  if (weighed.override.has_value()) {
    absl::StrAppend(
        &text, weighed.override->by.empty() ? "" : " That was ", weighed.override->by,
        weighed.override->by.empty() ? "" : ".", " It holds until ",
        absl::FormatTime("%Y-%m-%d %H:%M:%S", weighed.override->until, absl::UTCTimeZone()),
        " UTC.");
  }
  if (weighed.is_blind) {
    absl::StrAppend(&text, " Some readings are missing now, so no replica is let go.");
  }
  return text;
}

void FillVerdict(const scaling::policy::Feasibility& feasibility, v1::ScalingDecision* decision) {
  decision->set_feasible(feasibility.feasible);
  decision->set_needs(feasibility.needs);
  if (feasibility.late_by != absl::InfiniteDuration()) {
    *decision->mutable_late_by() = ToProto(feasibility.late_by);
  }
  if (feasibility.finish != absl::InfiniteFuture() && feasibility.finish != absl::InfinitePast()) {
    SetTime(feasibility.finish, decision->mutable_finish());
  }
}

}  // namespace

v1::ScalingAction ActionOf(const absl::StatusOr<actuator::Outcome>& outcome, bool is_dry,
                           absl::Time now) {
  v1::ScalingAction action;
  SetTime(now, action.mutable_answered());
  if (!outcome.ok()) {
    action.set_state(absl::IsAborted(outcome.status()) ? v1::ScalingAction::STATE_SUPERSEDED
                                                       : v1::ScalingAction::STATE_FAILED);
    action.set_detail(outcome.status().ToString());
    return action;
  }
  action.set_state(is_dry ? v1::ScalingAction::STATE_NOT_ASKED : v1::ScalingAction::STATE_DONE);
  action.set_before(outcome->before);
  action.set_after(outcome->after);
  action.set_detail(outcome->detail);
  return action;
}

v1::ReplicaCounts CountsOf(const scaling::policy::Fleet& fleet) {
  v1::ReplicaCounts counts;
  counts.set_ready(fleet.ready);
  counts.set_starting(static_cast<int>(fleet.starting.size()));
  counts.set_draining(fleet.draining);
  counts.set_standby(fleet.parked);
  counts.set_tasks(fleet.tasks);
  return counts;
}

v1::ScalingOverride ToProto(const Override& override) {
  v1::ScalingOverride proto;
  proto.set_target(override.target);
  proto.set_replicas(override.replicas);
  SetTime(override.until, proto.mutable_until());
  proto.set_by(override.by);
  return proto;
}

v1::GetDecisionResponse RecordOf(const Weighed& weighed) {
  const scaling::policy::Decision& decided = weighed.decided;
  v1::GetDecisionResponse record;
  v1::ScalingDecision* const decision = record.mutable_decision();
  SetTime(weighed.observation.now, decision->mutable_decided());
  decision->set_replicas(decided.replicas);
  decision->set_tasks(decided.tasks);
  decision->set_standby(decided.standby);
  decision->set_replicas_before(weighed.observation.fleet.committed());
  decision->set_binding(std::string(scaling::policy::BindingName(decided.binding)));
  decision->set_wanted(decided.wanted);
  FillVerdict(decided.feasibility, decision);
  if (decided.deadline.has_value()) SetTime(*decided.deadline, decision->mutable_deadline());
  decision->set_explanation(ExplanationOf(weighed));
  FillInputs(weighed, record.mutable_inputs());
  AddCandidates(weighed, &record);
  return record;
}

namespace {

// The deadline of the oldest work in the statistics; nullopt: they show no work.
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
