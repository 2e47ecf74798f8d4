// RuledPolicy: another policy, held to the rules of a target.
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

// Why the last decision is what it is, as far as rules had a say.
struct RuleTrace {
  Ruling ruling;
  scaling::policy::Bounds bounds;  // that the other policy was held to
  double budget_spent = 0;         // replica-minutes of the last hour; 0: there is no budget
  std::optional<int> budget_cap;   // what it leaves; nullopt: there is no budget
  std::string reaction;            // the condition of the rule that changed the number, or empty
  bool has_lost_metrics = false;   // on_metric_loss is in force
};

// The order of things: constraints set the bounds that the other policy sees; reactions change what
// it wants; the stabilizer slows that down; what comes out lies within the bounds, always. When no
// queue was read for on_metric_loss.after readings, reactions rest and what was asked to be kept is
// kept; before that nothing is let go unseen.
//
// When time steps back, what was measured and spent begins anew, and no cool-down is in force.
//
// A budget takes from the range's max what it cannot pay, but neither below the range's min nor
// below the replicas that are at work: it stops growth, not work.
class RuledPolicy final : public scaling::policy::Policy {
 public:
  // NotFound: the rules have no such target.
  static absl::StatusOr<std::unique_ptr<RuledPolicy>> Make(
      std::shared_ptr<const Rules> rules, absl::string_view target,
      std::unique_ptr<scaling::policy::Policy> policy);

  // From now on. What was measured, spent and stepped stays, as far as the new rules still ask for
  // it. NotFound: they have no such target; the old ones stay in force.
  absl::Status Use(std::shared_ptr<const Rules> rules);

  void Announce(const scaling::policy::Announcement& announcement) override;
  // The bounds of `observation` are not looked at: the rules' own take their place.
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override;

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
  absl::Time last_reading_ = absl::InfinitePast();  // or when one was missed
  absl::Time last_step_up_ = absl::InfinitePast();
  int step_goal_ = 0;  // of that step
};

}  // namespace muster::scaling::rules
