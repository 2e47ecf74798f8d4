// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/claim_tuning.h"

#include <algorithm>
#include <cmath>

namespace muster::listener {

namespace {

// Weight of the newest batch: a change of pace shows after about four batches.
constexpr double kNewestWeight = 0.25;

}  // namespace

int ClaimSizer::Claim(int max) const {
  base::MutexLock lock(&mu_);
  if (!measured_) return 1;
  const int ramp = std::min<int64_t>(max, int64_t{2} * largest_batch_);
  const double horizon = absl::ToDoubleSeconds(horizon_);
  if (seconds_per_message_ * ramp <= horizon) return std::max(1, ramp);
  return std::clamp(static_cast<int>(horizon / seconds_per_message_), 1, std::max(1, ramp));
}

void ClaimSizer::Observe(int messages, absl::Duration elapsed) {
  if (messages <= 0) return;
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(elapsed)) / messages;
  base::MutexLock lock(&mu_);
  seconds_per_message_ =
      measured_ ? seconds_per_message_ + kNewestWeight * (seconds - seconds_per_message_) : seconds;
  largest_batch_ = std::max(largest_batch_, messages);
  measured_ = true;
}

namespace {

constexpr int kHeadroom = 3;
constexpr int kBucketsPerDoubling = 4;
constexpr uint32_t kEnough = 100;
constexpr uint32_t kWindow = 1024;
// Finding the percentile takes a pass over the buckets, so it is not done for each message.
constexpr uint32_t kTuneEvery = 64;
constexpr int kInTimeToForget = 1000;

absl::Duration UpperEdge(int bucket) {
  return absl::Milliseconds(std::exp2(static_cast<double>(bucket + 1) / kBucketsPerDoubling));
}

}  // namespace

VisibilityTuner::VisibilityTuner(absl::Duration least, absl::Duration most)
    : least_(least), most_(std::max(least, most)), floor_(least), measured_(least) {}

void VisibilityTuner::Observe(absl::Duration held) {
  base::MutexLock lock(&mu_);
  ++held_[static_cast<size_t>(BucketOf(held))];
  ++total_;
  if (total_ >= kEnough && total_ % kTuneEvery == 0) TuneLocked();
  if (floor_ > least_ && ++in_time_ >= kInTimeToForget) {
    floor_ = std::max(least_, floor_ / 2);
    in_time_ = 0;
  }
}

void VisibilityTuner::ObserveLost() {
  base::MutexLock lock(&mu_);
  floor_ = std::min(most_, VisibilityLocked() * 2);
  in_time_ = 0;
}

absl::Duration VisibilityTuner::Visibility() const {
  base::MutexLock lock(&mu_);
  return VisibilityLocked();
}

absl::Duration VisibilityTuner::VisibilityLocked() const {
  return std::clamp(std::max(measured_, floor_), least_, most_);
}

void VisibilityTuner::TuneLocked() {
  measured_ = PercentileLocked() * kHeadroom;
  if (total_ >= kWindow) AgeLocked();
}

absl::Duration VisibilityTuner::PercentileLocked() const {
  uint32_t above = total_ / 100;  // this many may be held for longer
  for (int bucket = kBuckets - 1; bucket > 0; --bucket) {
    const uint32_t here = held_[static_cast<size_t>(bucket)];
    if (here > above) return UpperEdge(bucket);
    above -= here;
  }
  return UpperEdge(0);
}

void VisibilityTuner::AgeLocked() {
  total_ = 0;
  for (uint32_t& count : held_) total_ += count /= 2;
}

int VisibilityTuner::BucketOf(absl::Duration held) {
  const double ms = std::max(1.0, absl::ToDoubleMilliseconds(held));
  return std::min(kBuckets - 1, static_cast<int>(std::log2(ms) * kBucketsPerDoubling));
}

}  // namespace muster::listener
