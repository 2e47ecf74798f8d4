// SPDX-License-Identifier: Apache-2.0

// RuledPolicy: runs another policy within the rules of a target.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/rules/constraints.h"
#include "muster/scaling/rules/operands.h"
#include "muster/scaling/rules/reactions.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// The influence of the rules on the last decision.
struct RuleTrace {
  Ruling ruling;
  scaling::policy::Bounds bounds;  // the bounds given to the other policy
  double budget_spent = 0;         // replica-minutes of the last hour; 0: there is no budget
  std::optional<int>
      budget_cap;        // the replicas that the budget allows; nullopt: there is no budget
  std::string reaction;  // the condition of the rule that changed the number, or empty
  bool has_lost_metrics = false;  // on_metric_loss is in force
};

// The order of steps: constraints set the bounds that the other policy sees; reactions change the
// number that it wants; the stabilizer slows the change down; the result always lies within the
// bounds. After on_metric_loss.after readings without any queue, reactions stop and the number that
// on_metric_loss states is kept; before that, no replica goes while readings are missing.
//
// When time steps back, measurements and spending start anew, and no cool-down is in force.
//
// A budget lowers the range's max to the replicas that it can pay, but neither below the range's
// min nor below the replicas at work: it stops growth, not work.
class RuledPolicy final : public scaling::policy::Policy {
 public:
  // NotFound: the rules have no such target.
  static absl::StatusOr<std::unique_ptr<RuledPolicy>> Make(
      std::shared_ptr<const Rules> rules, absl::string_view target,
      std::unique_ptr<scaling::policy::Policy> policy);

  // Replaces the rules. Measurements, spending and steps stay, as far as the new rules use them.
  // NotFound: the new rules lack the target; the old rules stay in force.
  absl::Status Use(std::shared_ptr<const Rules> rules);

  // Before the first decision: the budget goes on with what was spent until now. If time has
  // stepped back since, it starts anew.
  void Resume(const scaling::policy::Spending& spending);
  // nullopt: no decision was made.
  std::optional<scaling::policy::Spending> spending() const { return account_.spending(); }

  void Announce(const scaling::policy::Announcement& announcement) override;
  // Ignores the bounds of `observation` and uses those of the rules.
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override;

  std::optional<double> forecast() const override { return policy_->forecast(); }

  // Of the last decision.
  const RuleTrace& trace() const { return trace_; }

 private:
  RuledPolicy(std::string target, std::unique_ptr<scaling::policy::Policy> policy);

  void StepBack(absl::Time now);
  void SetBounds(const scaling::policy::Observation& observation);
  bool HasLostMetrics(const scaling::policy::Observation& observation);
  void React(const scaling::policy::Observation& observation, scaling::policy::Decision* decision);
  void Keep(const scaling::policy::Observation& observation,
            scaling::policy::Decision* decision) const;
  void Stabilize(const scaling::policy::Observation& observation,
                 scaling::policy::Decision* decision) const;
  void NoteStepUp(const scaling::policy::Observation& observation,
                  const scaling::policy::Decision& decision);

  const std::string target_;
  const std::unique_ptr<scaling::policy::Policy> policy_;
  std::shared_ptr<const Rules> rules_;
  std::optional<ConstraintSchedule> schedule_;
  Operands operands_;
  Reactions reactions_;
  BudgetAccount account_;
  RuleTrace trace_;

  absl::Time last_decision_ = absl::InfinitePast();
  int lost_readings_ = 0;
  absl::Time last_reading_ = absl::InfinitePast();  // or of the last missed one
  absl::Time last_step_up_ = absl::InfinitePast();
  int step_goal_ = 0;  // the number that the last step up asked for
};

}  // namespace muster::scaling::rules
