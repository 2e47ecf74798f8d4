// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/policy.h"

#include <algorithm>
#include <cmath>

namespace muster::scaling::policy {

namespace {

// Longer than any start or any work item takes; an infinite one would stop all arithmetic.
constexpr absl::Duration kLongest = absl::Hours(24 * 7);

int SaneCount(int count) { return std::clamp(count, 0, kMaxReplicas); }

double SaneNumber(double number) { return std::isfinite(number) && number > 0 ? number : 0; }

absl::Duration SaneDuration(absl::Duration duration) {
  return std::clamp(duration, absl::ZeroDuration(), kLongest);
}

void MakeSane(Estimates* estimates) {
  estimates->items_per_second = SaneNumber(estimates->items_per_second);
  // Slower than one item in a week: too slow to scale.
  if (estimates->items_per_second < 1e-6) estimates->items_per_second = 0;
  estimates->service_time = SaneDuration(estimates->service_time);
  estimates->cold_start = SaneDuration(estimates->cold_start);
  // Instead of releasing a parked replica, a new one can always start.
  estimates->release = std::min(SaneDuration(estimates->release), estimates->cold_start);
  estimates->cpu_share = SaneNumber(estimates->cpu_share);
  estimates->throttled_share = SaneNumber(estimates->throttled_share);
}

void MakeSane(absl::Time now, Fleet* fleet) {
  fleet->ready = SaneCount(fleet->ready);
  fleet->draining = SaneCount(fleet->draining);
  fleet->parked = SaneCount(fleet->parked);
  fleet->max_tasks = std::max(1, SaneCount(fleet->max_tasks));
  fleet->tasks = std::max(1, SaneCount(fleet->tasks));
  if (fleet->starting.size() > kMaxReplicas) fleet->starting.resize(kMaxReplicas);
  for (absl::Time& ready : fleet->starting) {
    if (ready < now) ready = now + SaneDuration(now - ready);
    ready = std::min(ready, now + kLongest);
  }
  std::sort(fleet->starting.begin(), fleet->starting.end());
}

}  // namespace

Observation Sane(const Observation& raw) {
  Observation sane = raw;
  sane.bounds.min = SaneCount(raw.bounds.min);
  sane.bounds.max = std::max(sane.bounds.min, SaneCount(raw.bounds.max));
  sane.bounds.standby = SaneCount(raw.bounds.standby);
  MakeSane(&sane.estimates);
  MakeSane(raw.now, &sane.fleet);
  return sane;
}

std::string_view BindingName(Binding binding) {
  switch (binding) {
    case Binding::kNothing:
      return "nothing";
    case Binding::kDeadline:
      return "deadline";
    case Binding::kLateStart:
      return "late-start";
    case Binding::kRate:
      return "rate";
    case Binding::kMin:
      return "min";
    case Binding::kMax:
      return "max";
    case Binding::kHold:
      return "hold";
    case Binding::kForecast:
      return "forecast";
    case Binding::kIdle:
      return "idle";
    case Binding::kThreads:
      return "threads";
    case Binding::kThrottled:
      return "throttled";
    case Binding::kNoMetrics:
      return "no-metrics";
    case Binding::kReaction:
      return "reaction";
    case Binding::kStabilizer:
      return "stabilizer";
    case Binding::kOverride:
      return "override";
    case Binding::kPolicy:
      return "policy";
  }
  return "unknown";
}

}  // namespace muster::scaling::policy
