// SPDX-License-Identifier: Apache-2.0

// FakeClock: time that moves only when a test says so, and that shows the test the waiting threads.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::base {

// Thread-safe. Starts at 2011-11-11T00:00:00Z.
class FakeClock final : public Clock {
 public:
  FakeClock();

  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
  bool WaitUntil(CondVar* cv, Mutex* mu, absl::Duration deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Moves time forward and wakes every waiter whose deadline it passes. Do not hold a mutex that
  // a waiter uses.
  void Advance(absl::Duration by);

  // Steps the wall clock only, as an administrator or NTP would; Monotonic() does not move.
  void StepWallClock(absl::Duration by);

  // Blocks until exactly `n` threads are waiting in WaitUntil for a finite deadline that lies
  // ahead. This is the signal that the code under test sleeps, so that Advance will wake it. A
  // thread that Advance has woken does not count any more, even if it has not run yet.
  void AwaitSleepers(int n);

  // The nearest deadline of a sleeper, or InfiniteDuration() when no thread sleeps.
  absl::Duration NextDeadline() const;

 private:
  struct Sleeper {
    CondVar* cv;
    Mutex* mu;
    absl::Duration deadline;
    int wakers = 0;  // calls of Advance that are waking it
  };

  int CountAsleepLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes `self` from the list once no Advance is waking it. Returns true when its deadline has
  // passed.
  bool Leave(Sleeper* self);

  mutable Mutex mu_;
  CondVar sleepers_changed_;
  absl::Duration monotonic_ ABSL_GUARDED_BY(mu_);
  absl::Time wall_ ABSL_GUARDED_BY(mu_);
  std::vector<Sleeper*> sleepers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::base
