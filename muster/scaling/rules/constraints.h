// SPDX-License-Identifier: Apache-2.0

// ConstraintSchedule: the limits of a target at an instant. BudgetAccount: the replica-minutes that
// a target has used.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/spending.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// The combined limits of the constraints in force. The names are those of the constraints that set
// the limit; empty: no constraint does.
struct Ruling {
  Range range;
  std::string range_by;  // empty: the target's own min and max
  std::optional<int> budget;
  std::string budget_by;
  int standby = 0;
  std::string standby_by;
  // The constraint that is about to come in force and has raised the range's min, or standby,
  // already.
  std::string prewarmed_by;

  bool operator==(const Ruling& other) const = default;
};

// Immutable. Thread-safe.
class ConstraintSchedule {
 public:
  // `target` is one of the targets of `rules`.
  ConstraintSchedule(std::shared_ptr<const Rules> rules, absl::string_view target);

  // `cold_start` is how far `prewarm: auto` looks ahead, at most kMaxPrewarm. If a coming window's
  // min is above the range's max, the max rises to it.
  Ruling At(absl::Time now, absl::Duration cold_start) const;

  // When At changes next, later than `now`; InfiniteFuture: never, as far as Calendar::NextChange
  // sees.
  absl::Time NextChange(absl::Time now, absl::Duration cold_start) const;

 private:
  // The limits without prewarming.
  Ruling InForce(absl::Time now) const;
  void Prewarmed(const Constraint& coming, absl::Time now, absl::Duration cold_start,
                 Ruling* ruling) const;

  // Owns the constraints below.
  std::shared_ptr<const Rules> rules_;
  const Target* const target_;
  std::vector<const Constraint*> constraints_;  // the lowest rank first
};

// BudgetAccount: the replica-minutes of the last hour.

// Counts by minutes of the clock, at most 62, so the hour may be up to a minute too long, but never
// too short. Not thread-safe.
class BudgetAccount {
 public:
  // Tells that from `now` on there are `replicas`; until now the number of the previous call
  // applied. A `now` before the previous one counts as equal to it.
  void Charge(absl::Time now, int replicas);

  // Replica-minutes in the hour before the last charge.
  double Spent() const;

  // What was counted so far; nullopt: nothing was charged.
  std::optional<scaling::policy::Spending> spending() const;
  // Goes on from there, in place of what this account has counted.
  void Resume(const scaling::policy::Spending& spending);

  // The number of replicas that the rest of `budget` pays for during kBudgetHorizon. A fleet that
  // is never larger never exceeds the budget.
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
