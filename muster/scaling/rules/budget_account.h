// BudgetAccount: the replica-minutes that a target has used in the last hour.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace muster::scaling::rules {

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
