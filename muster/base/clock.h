// SPDX-License-Identifier: Apache-2.0

// Clock: the only source of time. Everything that reads time or waits for it takes a Clock*, so
// that tests own time with FakeClock (fake_clock.h).
#pragma once

#include <stop_token>

#include "absl/time/time.h"
#include "muster/base/mutex.h"

namespace muster::base {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall-clock time; what is stored and shown. It may step; never measure a lapse with it.
  virtual absl::Time Now() const = 0;

  // Time since an arbitrary start; never steps back. What lapses and leases are measured with.
  virtual absl::Duration Monotonic() const = 0;

  // Lets go of `mu`, waits until `cv` is notified or Monotonic() >= `deadline`, and takes `mu`
  // again. Returns true when the deadline has passed. May wake spuriously: call it in a loop over a
  // condition. absl::InfiniteDuration() waits for a notification only.
  virtual bool WaitUntil(CondVar* cv, Mutex* mu, absl::Duration deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
};

// The machine's clock. One object for the whole process; never destroyed.
Clock* RealClock();

// The monotonic time at which `clock` shows `time`, if its wall clock does not step meanwhile. Time
// that passes during the call makes it early, never late: who waits for it looks at Now() again.
absl::Duration MonotonicAt(const Clock& clock, absl::Time time);

// Sleeps for `duration` of `clock`'s monotonic time. True: slept to the end. False: a stop was
// requested, before or meanwhile. A duration of zero or less does not sleep.
bool SleepUnlessStopped(Clock* clock, absl::Duration duration, const std::stop_token& stop);

}  // namespace muster::base
