// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/hold_tuner.h"

#include <algorithm>
#include <cstddef>

namespace muster::scaling::policy {

namespace {

// A replica counts as idle when two looks see it idle, because every replica is idle between two
// items.
constexpr absl::Duration kTwoLooks = absl::Seconds(2);

// Old idle times count less: half after about seven hundred newer ones.
constexpr double kFading = 0.999;

// The starting assumption: this many replicas were missed just before the longest hold ended.
constexpr int kPrior = 2;

constexpr size_t kRememberedGone = 4096;

}  // namespace

HoldTuner::HoldTuner() {
  for (int i = 0; i < kPrior; ++i) Weigh(1, true);
}

void HoldTuner::Weigh(double idle, bool missed) {
  for (int step = 0; step <= kSteps; ++step) {
    const double hold = static_cast<double>(step) / kSteps;
    const bool starts = missed && idle > hold;
    cost_[step] = cost_[step] * kFading + std::min(idle, hold) + (starts ? 1 : 0);
  }
}

absl::Duration HoldTuner::Hold(absl::Duration longest) const {
  const auto cheapest = std::min_element(cost_.rbegin(), cost_.rend());  // the longest of equals
  const auto step = kSteps - (cheapest - cost_.rbegin());
  return std::min(longest, std::max(kTwoLooks, longest * step / kSteps));
}

void HoldTuner::Reused(absl::Time now, absl::Time since, bool needed, absl::Duration longest) {
  if (longest > absl::ZeroDuration()) Weigh(absl::FDivDuration(now - since, longest), needed);
}

void HoldTuner::LetGo(absl::Time since) {
  let_go_.push_back(since);
  if (let_go_.size() > kRememberedGone) let_go_.pop_front();
}

void HoldTuner::Started(absl::Time now, int replicas, absl::Duration longest) {
  See(now, longest);
  for (; replicas > 0 && !let_go_.empty(); --replicas) {
    Reused(now, let_go_.back(), true, longest);
    let_go_.pop_back();
  }
}

void HoldTuner::See(absl::Time now, absl::Duration longest) {
  while (!let_go_.empty() && now - let_go_.front() > longest) {
    Weigh(2, false);
    let_go_.pop_front();
  }
}

}  // namespace muster::scaling::policy
