// SPDX-License-Identifier: Apache-2.0

// AwaySpacing: keeps messages for other listeners from taking more than a part of a listener's time
// when they come again. A broker delivers those that come again before new ones: without it,
// thousands that no listener takes would hold up all that is put after them.
#pragma once

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::listener {

// Thread-safe; one for all tasks of a listener.
class AwaySpacing {
 public:
  // `clock` is not owned.
  explicit AwaySpacing(base::Clock* clock) : clock_(clock) {}

  // One more message is put back. Returns how long it stays away at least.
  absl::Duration Next() ABSL_LOCKS_EXCLUDED(mu_);

  // To receive `messages` and put all of them back took a task so long.
  void Observe(int messages, absl::Duration took) ABSL_LOCKS_EXCLUDED(mu_);

  // Messages that come again take one part in so many of a task's time.
  static constexpr int kShare = 8;
  // Between two of them, and at most: a task may have waited for something else.
  static constexpr absl::Duration kSpacing = absl::Milliseconds(4);
  static constexpr absl::Duration kMostSpacing = absl::Milliseconds(100);
  // A listener that fits may start at any time. Enough for all that a broker has under way (some
  // 65,000 messages) at the least spacing.
  static constexpr absl::Duration kMost = absl::Minutes(5);

 private:
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  absl::Duration spacing_ ABSL_GUARDED_BY(mu_) = kSpacing;
  absl::Duration next_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();  // monotonic
};

}  // namespace muster::listener
