// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/idle_replicas.h"

#include <algorithm>
#include <vector>

#include "muster/base/check.h"

namespace muster::scaling::policy {

void IdleHold::Reset() { *this = IdleHold(); }

void IdleHold::See(absl::Time now, const Fleet& fleet, absl::Duration hold) {
  if (fleet.ready > ready_ || seen_at_ == absl::InfinitePast()) grown_at_ = now;
  ready_ = fleet.ready;

  int idle = 0, idle_long = 0, idle_all_along = 0;
  for (absl::Time since : fleet.idle_since) {
    if (since > now) continue;
    ++idle;
    idle_long += now - since >= hold ? 1 : 0;
    idle_all_along += since <= seen_at_ ? 1 : 0;
  }
  idle = std::min(idle, ready_);
  idle_long = std::min(idle_long, ready_);
  // With short, rare work no look finds a busy replica, although one replica is needed.
  const bool any_worked = idle_all_along < ready_;
  const int busy = std::max(ready_ - idle, any_worked ? 1 : 0);
  seen_at_ = now;

  while (!most_busy_.empty() && most_busy_.back().busy <= busy) most_busy_.pop_back();
  most_busy_.push_back({now, busy});
  while (most_busy_.front().at <= now - hold && most_busy_.size() > 1) most_busy_.pop_front();

  const bool saw_enough = now - grown_at_ >= hold;
  const int unused = saw_enough ? std::max(0, ready_ - most_busy_.front().busy) : 0;
  removable_ = std::max(idle_long, unused);
  MUSTER_CHECK(0 <= removable_ && removable_ <= ready_, "removable ", removable_, ", ready ",
               ready_);
}

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

void IdleReplicas::See(const Observation& observation) {
  longest_ = cold_starts_ * observation.estimates.cold_start;
  // Tune once for each instant: after a decision is carried out, the same instant must not yield
  // another decision.
  if (observation.now != now_) {
    tuner_.See(observation.now, longest_);
    chosen_ = tuner_.Hold(longest_);
  }
  now_ = observation.now;
  hold_.See(now_, observation.fleet, chosen_);
}

void IdleReplicas::StepBack(absl::Time now) {
  hold_.Reset();
  tuner_.StepBack();
  weighed_ = now;
}

void IdleReplicas::WorkCame(const Fleet& fleet, absl::FunctionRef<int(int)> missed_without) {
  std::vector<absl::Time> since;  // of idle times that end now; the latest last
  for (absl::Time at : fleet.idle_since) {
    if (at > weighed_ && at <= now_) since.push_back(at);
  }
  weighed_ = now_;
  if (since.empty()) return;
  std::sort(since.begin(), since.end());
  const int idle = static_cast<int>(since.size());
  const int missed = missed_without(idle);
  for (int i = 0; i < idle; ++i) tuner_.Reused(now_, since[i], idle - i <= missed, longest_);
}

void IdleReplicas::Decided(const Fleet& fleet, int replicas) {
  const int more = replicas - fleet.committed();
  if (more > 0) tuner_.Started(now_, more, longest_);
  const int fewer = std::min(-more, static_cast<int>(fleet.idle_since.size()));
  for (int i = 0; i < fewer; ++i) tuner_.LetGo(std::min(now_, fleet.idle_since[i]));
}

}  // namespace muster::scaling::policy
