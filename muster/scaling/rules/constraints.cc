// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/constraints.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {

namespace {

absl::Duration LeadOf(const Prewarm& prewarm, absl::Duration cold_start) {
  const absl::Duration lead = prewarm.by_cold_start ? cold_start : prewarm.lead;
  return std::clamp(lead, absl::ZeroDuration(), kMaxPrewarm);
}

}  // namespace

ConstraintSchedule::ConstraintSchedule(std::shared_ptr<const Rules> rules, absl::string_view target)
    : rules_(std::move(rules)), target_(rules_->FindTarget(target)) {
  for (const Constraint& constraint : rules_->constraints) {
    if (constraint.target == target) constraints_.push_back(&constraint);
  }
  std::stable_sort(constraints_.begin(), constraints_.end(),
                   [](const Constraint* a, const Constraint* b) { return a->rank < b->rank; });
}

Ruling ConstraintSchedule::InForce(absl::Time now) const {
  Ruling ruling;
  ruling.range = target_->range;
  for (const Constraint* const constraint : constraints_) {
    if (constraint->when && !constraint->when->IsOpen(now)) continue;
    if (constraint->range) {
      ruling.range = *constraint->range;
      ruling.range_by = constraint->name;
    }
    if (constraint->budget) {
      ruling.budget = constraint->budget;
      ruling.budget_by = constraint->name;
    }
    if (constraint->standby) {
      ruling.standby = *constraint->standby;
      ruling.standby_by = constraint->name;
    }
  }
  return ruling;
}

// Raises only limits that will rule when the window opens: an outranked floor never comes in force.
void ConstraintSchedule::Prewarmed(const Constraint& coming, absl::Time now,
                                   absl::Duration cold_start, Ruling* ruling) const {
  const absl::Duration lead = LeadOf(coming.prewarm, cold_start);
  if (!coming.when || lead == absl::ZeroDuration() || coming.when->IsOpen(now)) return;
  const absl::Time start = coming.when->NextStart(now, now + lead);
  if (start == absl::InfiniteFuture()) return;
  const Ruling then = InForce(start);
  if (then.range_by == coming.name && then.range.min > ruling->range.min) {
    ruling->range.min = then.range.min;
    ruling->range.max = std::max(ruling->range.max, then.range.min);
    ruling->prewarmed_by = coming.name;
  }
  if (then.standby_by == coming.name && then.standby > ruling->standby) {
    ruling->standby = then.standby;
    ruling->prewarmed_by = coming.name;
  }
}

Ruling ConstraintSchedule::At(absl::Time now, absl::Duration cold_start) const {
  Ruling ruling = InForce(now);
  for (const Constraint* const constraint : constraints_) {
    Prewarmed(*constraint, now, cold_start, &ruling);
  }
  return ruling;
}

absl::Time ConstraintSchedule::NextChange(absl::Time now, absl::Duration cold_start) const {
  const Ruling before = At(now, cold_start);
  absl::Time at = now;
  // A window may open or close without effect; then continue with the next change.
  for (int i = 0; i < kMaxChainedWindows; ++i) {
    absl::Time next = absl::InfiniteFuture();
    for (const Constraint* const constraint : constraints_) {
      if (!constraint->when) continue;
      const absl::Duration lead = LeadOf(constraint->prewarm, cold_start);
      next = std::min(next, constraint->when->NextChange(at));
      // A prewarmed floor comes in force `lead` before its window.
      const absl::Time early = constraint->when->NextStart(at + lead) - lead;
      if (early > at) next = std::min(next, early);
    }
    if (next == absl::InfiniteFuture() || At(next, cold_start) != before) return next;
    at = next;
  }
  return absl::InfiniteFuture();
}

namespace {

int64_t MinuteOf(absl::Time time) { return absl::ToUnixSeconds(time) / 60; }

absl::Time BeginOf(int64_t minute) { return absl::UnixEpoch() + minute * absl::Minutes(1); }

}  // namespace

void BudgetAccount::Charge(absl::Time now, int replicas) {
  if (last_) now = std::max(now, *last_);
  const int64_t oldest = MinuteOf(now) - 60;
  // Time before the last hour does not count any more.
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

std::optional<scaling::policy::Spending> BudgetAccount::spending() const {
  if (!last_) return std::nullopt;
  scaling::policy::Spending spending{*last_, replicas_, {}};
  for (const Minute& minute : minutes_) spending.minutes.emplace_back(minute.number, minute.used);
  return spending;
}

void BudgetAccount::Resume(const scaling::policy::Spending& spending) {
  last_ = spending.until;
  replicas_ = spending.replicas;
  minutes_.clear();
  for (const auto& [number, used] : spending.minutes) minutes_.push_back({number, used});
}

int BudgetAccount::Affordable(int budget) const {
  const double left = std::max(0.0, budget - Spent());
  return static_cast<int>(std::floor(left / absl::ToDoubleMinutes(kBudgetHorizon)));
}

}  // namespace muster::scaling::rules
