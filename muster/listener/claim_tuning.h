// SPDX-License-Identifier: Apache-2.0

// ClaimSizer: how many messages a dequeue task should claim, so that it holds only messages that it
// will start soon and leaves the rest to others. VisibilityTuner: how long to lease them.
#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "muster/base/mutex.h"

namespace muster::listener {

// Thread-safe; one for all tasks of a listener, so that a new task starts with what is known.
class ClaimSizer {
 public:
  // `horizon`: how long a claimed message may wait for its task to start it.
  explicit ClaimSizer(absl::Duration horizon) : horizon_(horizon) {}

  // Returns the number of messages to claim now, 1 to `max`. The first claim is 1; then at most
  // twice the largest batch so far, and no more than fit the horizon.
  int Claim(int max) const;

  // `messages` took `elapsed` together.
  void Observe(int messages, absl::Duration elapsed);

 private:
  const absl::Duration horizon_;
  mutable base::Mutex mu_;
  bool measured_ ABSL_GUARDED_BY(mu_) = false;
  int largest_batch_ ABSL_GUARDED_BY(mu_) = 0;
  double seconds_per_message_ ABSL_GUARDED_BY(mu_) = 0;  // exponentially weighted mean
};

// VisibilityTuner: how long a lease should last, by how long messages are held. The
// LeaseRenewer renews longer holds; a lease that fits makes renewals rare, and lost leases rarer.

// Thread-safe.
class VisibilityTuner {
 public:
  // The result lies between `least` and `most`; at first it is `least`.
  VisibilityTuner(absl::Duration least, absl::Duration most);

  // A message was held for so long, from before its receive to its settlement.
  void Observe(absl::Duration held);
  // A message was settled too late: its lease was lost.
  void ObserveLost();

  // Returns the visibility for the next receive: three times the 99th percentile of the last
  // thousand or so messages, once there are some hundred. After a lost lease it is twice the
  // previous value, and half of that again after each thousand messages settled in time.
  absl::Duration Visibility() const;

 private:
  // Four to a doubling, from 1 ms to beyond 7 days.
  static constexpr int kBuckets = 4 * 40;

  static int BucketOf(absl::Duration held);
  absl::Duration PercentileLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration VisibilityLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TuneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AgeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration least_;
  const absl::Duration most_;
  mutable base::Mutex mu_;
  std::array<uint32_t, kBuckets> held_ ABSL_GUARDED_BY(mu_) = {};
  uint32_t total_ ABSL_GUARDED_BY(mu_) = 0;       // of held_
  absl::Duration floor_ ABSL_GUARDED_BY(mu_);     // after lost leases
  int in_time_ ABSL_GUARDED_BY(mu_) = 0;          // since floor_ changed
  absl::Duration measured_ ABSL_GUARDED_BY(mu_);  // three times the percentile
};

}  // namespace muster::listener
