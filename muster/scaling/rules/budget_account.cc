#include "muster/scaling/rules/budget_account.h"

#include <algorithm>
#include <cmath>

#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {
namespace {

int64_t MinuteOf(absl::Time time) { return absl::ToUnixSeconds(time) / 60; }

absl::Time BeginOf(int64_t minute) { return absl::UnixEpoch() + minute * absl::Minutes(1); }

}  // namespace

void BudgetAccount::Charge(absl::Time now, int replicas) {
  if (last_) now = std::max(now, *last_);
  const int64_t oldest = MinuteOf(now) - 60;
  // What lies before the hour need not be split into its minutes.
  absl::Time from = std::max(last_.value_or(now), BeginOf(oldest));
  while (from < now) {
    const int64_t minute = MinuteOf(from);
    const absl::Time to = std::min(now, BeginOf(minute + 1));
    if (minutes_.empty() || minutes_.back().number != minute) minutes_.push_back({minute, 0});
    minutes_.back().used += replicas_ * absl::ToDoubleMinutes(to - from);
    from = to;
  }
  while (!minutes_.empty() && minutes_.front().number < oldest) minutes_.pop_front();
  last_ = now;
  replicas_ = replicas;
}

double BudgetAccount::Spent() const {
  double spent = 0;
  for (const Minute& minute : minutes_) spent += minute.used;
  return spent;
}

int BudgetAccount::Affordable(int budget) const {
  const double left = std::max(0.0, budget - Spent());
  return static_cast<int>(std::floor(left / absl::ToDoubleMinutes(kBudgetHorizon)));
}

}  // namespace muster::scaling::rules
