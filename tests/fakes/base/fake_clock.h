// FakeClock: time that moves only when a test says so, and that tells the test who waits for it.
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
  // ahead: the signal that the code under test has gone to sleep, so that Advance has somebody to
  // wake. Those that Advance has woken count no more, even if they have not run yet.
  void AwaitSleepers(int n);

  // The nearest deadline ahead of a sleeper, or InfiniteDuration() when nobody sleeps.
  absl::Duration NextDeadline() const;

 private:
  struct Sleeper {
    CondVar* cv;
    Mutex* mu;
    absl::Duration deadline;
    int wakers = 0;  // calls of Advance that are waking it
  };

  int CountAsleepLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes `self` off the list once nobody is waking it. True when its deadline has passed.
  bool Leave(Sleeper* self);

  mutable Mutex mu_;
  CondVar sleepers_changed_;
  absl::Duration monotonic_ ABSL_GUARDED_BY(mu_);
  absl::Time wall_ ABSL_GUARDED_BY(mu_);
  std::vector<Sleeper*> sleepers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::base
