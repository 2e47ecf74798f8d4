// Reactions: what a target's reactive rules make of the number that a policy wants.
//
// The policy's own answer has the lowest rank. From there the rules go up by rank, each rank
// working on what came out before, so that the highest has the last word. Within a rank
//   - `set: n` makes it n, of several the largest;
//   - a step up makes it at least what the step leads to, of several the largest;
//   - a step down, where nothing of that rank steps up or sets, lets go of what the work alone does
//     not need: at most down to Decision::wanted;
//   - `hold: up` grows no further, unless something of that rank does; `hold: down` shrinks no
//     further.
// A step is counted from the replicas that there were when its condition became true, and stands as
// long as that stays true. It is taken again when all replicas are ready and a cold start has
// passed, kMinReactionPause at least.
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
  // Those of `target` from now on. A rule that is as it was keeps the step that it has taken.
  void Use(std::shared_ptr<const Rules> rules, absl::string_view target);

  // Time steps back to `now`: steps that were taken count as taken now.
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
  // A rule whose condition is true.
  struct Active {
    const Reaction* reaction = nullptr;
    int goal = 0;  // of a step or a set
  };

  bool IsTrue(const Reaction& reaction, const Operands& operands, absl::Time now) const;
  int GoalOf(const Reaction& reaction, const scaling::policy::Observation& observation);
  // The rules of one rank, of which some may be true.
  std::vector<Active> ActiveOf(size_t begin, size_t end,
                               const scaling::policy::Observation& observation,
                               const Operands& operands);

  // What rules of one rank make of the outcome so far.
  static void ApplyRank(std::vector<Active> active, int there, int wanted, Outcome* outcome);

  std::shared_ptr<const Rules> rules_;
  const Target* target_ = nullptr;
  std::vector<const Reaction*> reactions_;  // the lowest rank first
  std::map<std::string, Step> steps_;       // by what tells a rule from others
};

}  // namespace muster::scaling::rules
