// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/estimators.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace muster::scaling::policy {

namespace {

constexpr size_t kSamples = 64;
constexpr size_t kTaskCounts = 64;
constexpr size_t kEnoughForAPercentile = 8;
constexpr double kShareOfMean = 0.85;

double LowerBoundOf(const std::deque<double>& samples) {
  if (samples.size() < kEnoughForAPercentile) {
    const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
    return kShareOfMean * sum / static_cast<double>(samples.size());
  }
  std::vector<double> sorted(samples.begin(), samples.end());
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 4);
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

}  // namespace

bool ServiceRate::See(int tasks, double items_per_second) {
  constexpr double kTooFast = 1e12;  // faster than any machine; sums of it stay finite
  if (tasks <= 0 || !(items_per_second > 0) || items_per_second > kTooFast) return false;
  std::deque<double>& samples = samples_[tasks];
  samples.push_back(items_per_second);
  if (samples.size() > kSamples) samples.pop_front();
  if (samples_.size() > kTaskCounts) {
    // Drop the number of tasks that is furthest from the present one.
    const bool first = tasks - samples_.begin()->first > samples_.rbegin()->first - tasks;
    samples_.erase(first ? samples_.begin() : std::prev(samples_.end()));
  }
  return true;
}

double ServiceRate::LowerBound(int tasks) const {
  const auto more = samples_.lower_bound(tasks);
  if (more != samples_.end() && more->first == tasks) return LowerBoundOf(more->second);
  double bound = 0;
  if (more != samples_.begin()) bound = LowerBoundOf(std::prev(more)->second);
  if (more != samples_.end() && tasks > 0) {
    bound = std::max(bound, LowerBoundOf(more->second) * tasks / more->first);
  }
  return bound;
}

namespace {

constexpr size_t kStarts = 100;
constexpr size_t kEnoughStarts = 5;

}  // namespace

bool ColdStart::See(absl::Duration measured, absl::Time at) {
  if (measured < absl::ZeroDuration() || measured > absl::Hours(24)) return false;
  starts_.push_back({measured, at});
  if (starts_.size() > kStarts) starts_.pop_front();
  return true;
}

void ColdStart::ForgetOld(absl::Time now) {
  std::erase_if(starts_, [now](const Start& start) { return now - start.at > kStartLifetime; });
}

absl::Duration ColdStart::P95() const {
  std::vector<absl::Duration> sorted;
  for (const Start& start : starts_) sorted.push_back(start.took);
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() < kEnoughStarts) {
    return sorted.empty() ? prior_ : std::max(prior_, sorted.back());
  }
  return sorted[(sorted.size() * 95 + 99) / 100 - 1];
}

}  // namespace muster::scaling::policy
