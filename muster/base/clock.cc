// SPDX-License-Identifier: Apache-2.0
#include "muster/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace muster::base {

namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }

  absl::Duration Monotonic() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }

  bool WaitUntil(CondVar* cv, Mutex* mu, absl::Duration deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (deadline == absl::InfiniteDuration()) {
      cv->Wait(mu);
      return false;
    }
    const std::chrono::steady_clock::time_point until(absl::ToChronoNanoseconds(deadline));
    cv->WaitUntil(mu, until);
    return Monotonic() >= deadline;
  }
};

}  // namespace

Clock* RealClock() {
  static Clock* const clock = new SystemClock;
  return clock;
}

absl::Duration MonotonicAt(const Clock& clock, absl::Time time) {
  // In this order: a pause between the two readings must not be added to the wait.
  const absl::Duration monotonic = clock.Monotonic();
  return monotonic + (time - clock.Now());
}

bool SleepUnlessStopped(Clock* clock, absl::Duration duration, const std::stop_token& stop) {
  const absl::Duration deadline = clock->Monotonic() + duration;
  Mutex mu;
  CondVar stopped;
  // Under the lock, so that the request cannot fall between the check and the wait below.
  const std::stop_callback wake(stop, WakeAll{&mu, &stopped});
  MutexLock lock(&mu);
  while (!stop.stop_requested()) {
    if (clock->Monotonic() >= deadline) return true;
    clock->WaitUntil(&stopped, &mu, deadline);
  }
  return false;
}

}  // namespace muster::base
