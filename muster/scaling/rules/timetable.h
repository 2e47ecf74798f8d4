// ConstraintSchedule: which constraints of a target rule at an instant.
#pragma once

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

}  // namespace muster::scaling::rules
