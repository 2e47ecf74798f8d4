// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/ruled_policy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {
namespace {

using scaling::policy::Binding;
using scaling::policy::Bounds;
using scaling::policy::Decision;
using scaling::policy::Fleet;
using scaling::policy::Observation;

// All replicas that cost something.
int PaidFor(const Fleet& fleet) { return fleet.committed() + fleet.draining + fleet.parked; }

int AtWork(const Fleet& fleet) {
  return std::max(0, fleet.ready - static_cast<int>(fleet.idle_since.size()));
}

void Change(int replicas, Binding binding, Decision* decision) {
  if (replicas == decision->replicas) return;
  decision->replicas = replicas;
  decision->binding = binding;
}

}  // namespace

RuledPolicy::RuledPolicy(std::string target, std::unique_ptr<scaling::policy::Policy> policy)
    : target_(std::move(target)), policy_(std::move(policy)) {}

absl::StatusOr<std::unique_ptr<RuledPolicy>> RuledPolicy::Make(
    std::shared_ptr<const Rules> rules, absl::string_view target,
    std::unique_ptr<scaling::policy::Policy> policy) {
  std::unique_ptr<RuledPolicy> made(new RuledPolicy(std::string(target), std::move(policy)));
  MUSTER_RETURN_IF_ERROR(made->Use(std::move(rules)));
  return made;
}

absl::Status RuledPolicy::Use(std::shared_ptr<const Rules> rules) {
  if (rules->FindTarget(target_) == nullptr) {
    return absl::NotFoundError(absl::StrCat("the rules have no target '", target_, "'"));
  }
  rules_ = std::move(rules);
  schedule_.emplace(rules_, target_);
  operands_.Use(*rules_, target_);
  reactions_.Use(rules_, target_);
  return absl::OkStatus();
}

void RuledPolicy::Resume(const scaling::policy::Spending& spending) {
  account_.Resume(spending);
  last_decision_ = spending.until;
}

void RuledPolicy::Announce(const scaling::policy::Announcement& announcement) {
  policy_->Announce(announcement);
}

// Times after `now` would stay in effect until the clock reaches them again: windows would refuse
// new samples, and a cool-down would not end. The count of lost readings stays, because it does not
// depend on times.
void RuledPolicy::StepBack(absl::Time now) {
  operands_.StepBack();
  reactions_.StepBack(now);
  account_ = BudgetAccount();
  last_reading_ = now;
  last_step_up_ = absl::InfinitePast();
}

void RuledPolicy::SetBounds(const Observation& observation) {
  account_.Charge(observation.now, PaidFor(observation.fleet));
  trace_ = RuleTrace{};
  trace_.ruling = schedule_->At(observation.now, observation.estimates.cold_start);
  const Ruling& ruling = trace_.ruling;
  MUSTER_CHECK(0 <= ruling.range.min && ruling.range.min <= ruling.range.max, target_, ": min ",
               ruling.range.min, ", max ", ruling.range.max);
  trace_.bounds = {ruling.range.min, ruling.range.max, ruling.standby};
  if (!ruling.budget) return;
  trace_.budget_spent = account_.Spent();
  trace_.budget_cap = account_.Affordable(*ruling.budget);
  const int payable = std::max(*trace_.budget_cap, AtWork(observation.fleet));
  trace_.bounds.max = std::clamp(payable, ruling.range.min, ruling.range.max);
}

// Announcements cause several decisions in a second, but a second without a reading is one loss.
bool RuledPolicy::HasLostMetrics(const Observation& observation) {
  if (!observation.queues.empty()) {
    lost_readings_ = 0;
    last_reading_ = observation.now;
  } else if (observation.now - last_reading_ >= kReadingPeriod) {
    lost_readings_ = std::min(lost_readings_ + 1, rules_->on_metric_loss.after);
    last_reading_ = observation.now;
  }
  return lost_readings_ >= rules_->on_metric_loss.after;
}

void RuledPolicy::React(const Observation& observation, Decision* decision) {
  const Reactions::Outcome outcome = reactions_.Apply(observation, *decision, operands_);
  trace_.reaction = outcome.by;
  Change(outcome.replicas, Binding::kReaction, decision);
}

void RuledPolicy::Keep(const Observation& observation, Decision* decision) const {
  const int current = observation.fleet.committed(), floor = observation.bounds.min;
  int kept = std::max(current, floor);
  if (!trace_.has_lost_metrics) {
    kept = std::max(current, decision->replicas);
  } else if (rules_->on_metric_loss.keep == MetricLoss::Keep::kCurrent) {
    kept = current;
  } else if (rules_->on_metric_loss.keep == MetricLoss::Keep::kFloor) {
    kept = floor;
  }
  Change(kept, Binding::kNoMetrics, decision);
}

// During a cool-down the last step may still be in progress, so its number stays allowed.
void RuledPolicy::Stabilize(const Observation& observation, Decision* decision) const {
  const Stabilizer& stabilizer = rules_->stabilizer;
  const int there = observation.fleet.committed();
  if (observation.now - last_step_up_ < stabilizer.up_cooldown) {
    const int allowed = std::max(there, step_goal_);
    Change(std::min(decision->replicas, allowed), Binding::kStabilizer, decision);
  }
  if (!stabilizer.idle_hold) return;
  const absl::Time since = observation.now - *stabilizer.idle_hold;
  const auto& idle = observation.fleet.idle_since;
  const auto ripe =
      std::count_if(idle.begin(), idle.end(), [&](absl::Time start) { return start <= since; });
  Change(std::max(decision->replicas, there - static_cast<int>(ripe)), Binding::kStabilizer,
         decision);
}

void RuledPolicy::NoteStepUp(const Observation& observation, const Decision& decision) {
  const bool cools_down = observation.now - last_step_up_ < rules_->stabilizer.up_cooldown;
  const int allowed = std::max(observation.fleet.committed(), cools_down ? step_goal_ : 0);
  if (decision.replicas <= allowed) return;
  last_step_up_ = observation.now;
  step_goal_ = decision.replicas;
}

Decision RuledPolicy::Decide(const Observation& observed) {
  if (observed.now < last_decision_) StepBack(observed.now);
  last_decision_ = observed.now;
  SetBounds(observed);
  Observation observation = observed;
  observation.bounds = trace_.bounds;
  const Bounds& bounds = observation.bounds;
  operands_.Observe(observation);
  Decision decision = policy_->Decide(observation);
  trace_.has_lost_metrics = HasLostMetrics(observation);
  if (!trace_.has_lost_metrics) React(observation, &decision);
  if (observation.queues.empty()) Keep(observation, &decision);
  if (!trace_.has_lost_metrics) Stabilize(observation, &decision);
  Change(std::max(decision.replicas, bounds.min), Binding::kMin, &decision);
  Change(std::min(decision.replicas, bounds.max), Binding::kMax, &decision);
  // What the policy wants warm keeps within what the rules leave it; their own standby is theirs.
  const int room = std::max(0, bounds.max - decision.replicas);
  decision.standby = std::max(std::min(decision.standby, room), bounds.standby);
  MUSTER_CHECK(bounds.min <= decision.replicas && decision.replicas <= bounds.max, target_,
               ": replicas ", decision.replicas, ", min ", bounds.min, ", max ", bounds.max);
  NoteStepUp(observation, decision);
  return decision;
}

}  // namespace muster::scaling::rules
