// ConstraintSchedule: which constraints of a target rule at an instant.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// What the constraints that are in force say together. Names are of the constraints that rule;
// empty: none says anything of it.
struct Ruling {
  Range range;
  std::string range_by;  // empty: the target's own min and max
  std::optional<int> budget;
  std::string budget_by;
  int standby = 0;
  std::string standby_by;
  // A window that is about to open and has raised the range's min, or standby, already.
  std::string prewarmed_by;

  bool operator==(const Ruling& other) const = default;
};

// Immutable. Thread-safe.
class ConstraintSchedule {
 public:
  // Of a target that `rules` have.
  ConstraintSchedule(std::shared_ptr<const Rules> rules, absl::string_view target);

  // `cold_start` is how long `prewarm: auto` looks ahead, kMaxPrewarm at most. A range's max gives
  // way when a coming window's min is above it.
  Ruling At(absl::Time now, absl::Duration cold_start) const;

  // When At changes next, later than `now`; InfiniteFuture: never, as far as Calendar::NextChange
  // sees.
  absl::Time NextChange(absl::Time now, absl::Duration cold_start) const;

 private:
  // Prewarming apart.
  Ruling InForce(absl::Time now) const;
  void Prewarmed(const Constraint& coming, absl::Time now, absl::Duration cold_start,
                 Ruling* ruling) const;

  // Of which the constraints are.
  std::shared_ptr<const Rules> rules_;
  const Target* const target_;
  std::vector<const Constraint*> constraints_;  // the lowest rank first
};

// BudgetAccount: the replica-minutes that a target has used in the last hour.

// Counts by minutes of the clock, 62 at most, so that the hour is up to a minute too long, never
// too short. Not thread-safe.
class BudgetAccount {
 public:
  // From `now` on there are so many replicas; there were as many as was said last until now. A time
  // that lies before the last one is taken for that.
  void Charge(absl::Time now, int replicas);

  // Replica-minutes in the hour before the last charge.
  double Spent() const;

  // How many replicas what is left of `budget` would pay for kBudgetHorizon. A fleet that is never
  // larger never exceeds the budget.
  int Affordable(int budget) const;

 private:
  struct Minute {
    int64_t number;  // since 1970
    double used;     // replica-minutes
  };

  std::deque<Minute> minutes_;  // oldest first
  std::optional<absl::Time> last_;
  int replicas_ = 0;
};

}  // namespace muster::scaling::rules
