// SPDX-License-Identifier: Apache-2.0

// What becomes of a decision of a TargetLoop: its record, the order, and the answer to that.
#include <optional>
#include <string>
#include <utility>

#include "muster/base/check.h"
#include "muster/base/log.h"
#include "services/scaling-agent/target_loop.h"

namespace muster::scaling_agent {

void TargetLoop::Conclude(const Weighed& weighed) {
  v1::GetDecisionResponse record = RecordOf(weighed);
  v1::ScalingDecision& decision = *record.mutable_decision();
  decision.set_target(name());
  const bool is_new = !term_->last.has_value() || !SaysTheSame(*term_->last, decision);
  if (is_new) {
    const std::optional<std::string> id = ids_.Take();
    if (!id.has_value()) return;  // the next decision tries again
    decision.set_id(*id);
  } else {
    decision.set_id(term_->last->id());
  }
  MUSTER_CHECK(weighed.decided.replicas >= 0 && weighed.decided.standby >= 0, "decision ",
               decision.id(), ", replicas ", weighed.decided.replicas, ", standby ",
               weighed.decided.standby);
  term_->standby = weighed.decided.standby;
  decided_ = weighed.decided.replicas + weighed.decided.standby;
  NoteActuated();
  NoteJudged(decision);
  SetDesired(decided_);
  actuator::Order order;
  order.target = name();
  order.decision = decision.id();
  order.replicas = decided_;
  // Most platforms cannot change the number of tasks; 0 leaves it as it is.
  order.tasks =
      weighed.decided.tasks == weighed.observation.fleet.tasks ? 0 : weighed.decided.tasks;
  order.let_go_first = let_go_first_;
  order.fencing_token = term_->token;
  if (is_new) {
    *decision.mutable_action() = ActionFor(order);
    term_->last = decision;
    Publish(record);
  }
  if (!CarriesOut()) return actuation_.Rest();
  // Before the first observation of the target, an order could be far from what exists.
  if (!actuation_.view().was_seen) return;
  actuation_.Want(std::move(order));
  if (is_new) actuation_thread_.Wake();
}

scaling::rules::ActuatedBy TargetLoop::actuated_by() const {
  return rules_->rules->FindTarget(name())->actuated_by;
}

bool TargetLoop::CarriesOut() const {
  return rules_->rules->mode == scaling::rules::Mode::kAct &&
         actuated_by() == scaling::rules::ActuatedBy::kAgent;
}

void TargetLoop::NoteActuated() {
  // Another autoscaler follows the number in every mode.
  const bool by_other = actuated_by() == scaling::rules::ActuatedBy::kExternal;
  const bool is_actuated = by_other || (CarriesOut() && !actuation_.is_dry());
  base::MutexLock lock(&mu_);
  is_actuated_ = is_actuated;
}

v1::ScalingAction TargetLoop::ActionFor(const actuator::Order& order) const {
  v1::ScalingAction action;
  const TargetView view = actuation_.view();
  action.set_before(view.state.wanted);
  action.set_after(order.replicas);
  if (!CarriesOut()) {
    action.set_state(v1::ScalingAction::STATE_NOT_ASKED);
    if (actuated_by() == scaling::rules::ActuatedBy::kExternal) {
      action.set_detail("another autoscaler carries it out");
    }
  } else if (actuation_.Needs(order)) {
    action.set_state(v1::ScalingAction::STATE_ORDERED);
  } else {
    action.set_state(v1::ScalingAction::STATE_NOTHING_TO_DO);
  }
  return action;
}

void TargetLoop::Publish(const v1::GetDecisionResponse& record) {
  const v1::ScalingDecision& decision = record.decision();
  const bool tells_people = rules_->rules->mode == scaling::rules::Mode::kNotify;
  base::Log(tells_people ? base::kWarning : base::kInfo, "decided",
            {{"decision", decision.id()},
             {"replicas", decision.replicas()},
             {"before", decision.replicas_before()},
             {"binding", decision.binding()},
             {"why", decision.explanation()}});
  CountDecision(decision);
  deps_.decision_log->Add(record);
}

void TargetLoop::CountDecision(const v1::ScalingDecision& decision) const {
  const int after = decision.replicas() + decision.standby(), before = decision.replicas_before();
  const char* const direction = after > before ? "up" : after < before ? "down" : "hold";
  decisions_.With({name(), decision.binding(), direction}).Add();
}

void TargetLoop::OnAnswer(const std::string& decision,
                          const absl::StatusOr<actuator::Outcome>& outcome) {
  deps_.decision_log->SetAction(decision,
                                ActionOf(outcome, actuation_.is_dry(), deps_.clock->Now()));
  Wake();
}

}  // namespace muster::scaling_agent
