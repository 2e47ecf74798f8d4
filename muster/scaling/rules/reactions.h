// SPDX-License-Identifier: Apache-2.0

// Reactions: applies a target's reactive rules to the number that a policy wants.
//
// The policy's own answer has the lowest rank. The rules apply in ascending rank, each rank to the
// result of the one before, so that the highest rank has the last word. Within a rank
//   - `set: n` makes it n, of several the largest;
//   - a step up makes it at least what the step leads to, of several the largest;
//   - a step down, where nothing of that rank steps up or sets, lets go of what the work alone does
//     not need: at most down to Decision::wanted;
//   - `hold: up` grows no further, unless something of that rank does; `hold: down` shrinks no
//     further.
// A step counts from the number of replicas at the moment when its condition became true, and stays
// in force as long as the condition is true. It is taken again when all replicas are ready and a
// cold start, at least kMinReactionPause, has passed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/rules/operands.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// Not thread-safe.
class Reactions {
 public:
  // Switches to the reactions of `target` in `rules`. An unchanged reaction keeps its last step.
  void Use(std::shared_ptr<const Rules> rules, absl::string_view target);

  // Time steps back to `now`: earlier steps count as taken at `now`.
  void StepBack(absl::Time now);

  struct Outcome {
    int replicas = 0;
    // The text of the condition of the last rule that changed the number; empty: none did.
    std::string by;
  };
  // Evaluates all conditions at `observation.now`.
  Outcome Apply(const scaling::policy::Observation& observation,
                const scaling::policy::Decision& decision, const Operands& operands);

 private:
  // A step that a rule has taken.
  struct Step {
    absl::Time at;
    int goal = 0;
  };
  // A reaction with a true condition.
  struct Active {
    const Reaction* reaction = nullptr;
    int goal = 0;  // the number that a step or a set leads to
  };

  bool IsTrue(const Reaction& reaction, const Operands& operands, absl::Time now) const;
  int GoalOf(const Reaction& reaction, const scaling::policy::Observation& observation);
  // The reactions of the rank from `begin` to `end` with a true condition.
  std::vector<Active> ActiveOf(size_t begin, size_t end,
                               const scaling::policy::Observation& observation,
                               const Operands& operands);

  // Applies the active reactions of one rank to the outcome so far.
  static void ApplyRank(std::vector<Active> active, int there, int wanted, Outcome* outcome);

  std::shared_ptr<const Rules> rules_;
  const Target* target_ = nullptr;
  std::vector<const Reaction*> reactions_;  // the lowest rank first
  std::map<std::string, Step> steps_;       // by a key that identifies the reaction
};

}  // namespace muster::scaling::rules
