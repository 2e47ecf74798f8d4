// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/base/fake_clock.h"

#include <algorithm>

namespace muster::base {

FakeClock::FakeClock() : monotonic_(absl::Hours(1)), wall_(absl::FromUnixSeconds(1320969600)) {}

absl::Time FakeClock::Now() const {
  MutexLock lock(&mu_);
  return wall_;
}

absl::Duration FakeClock::Monotonic() const {
  MutexLock lock(&mu_);
  return monotonic_;
}

bool FakeClock::WaitUntil(CondVar* cv, Mutex* mu, absl::Duration deadline) {
  if (deadline == absl::InfiniteDuration()) {
    cv->Wait(mu);
    return false;
  }
  Sleeper self{.cv = cv, .mu = mu, .deadline = deadline};
  {
    MutexLock lock(&mu_);
    if (monotonic_ >= deadline) return true;
    sleepers_.push_back(&self);
    sleepers_changed_.NotifyAll();
  }
  // Advance takes `mu` before it notifies, so that the wake-up cannot fall between the check above
  // and this wait.
  cv->Wait(mu);
  // Advance needs `mu` to be done with this sleeper, whose cv and mu may die once this returns.
  mu->Unlock();
  const bool passed = Leave(&self);
  mu->Lock();
  return passed;
}

bool FakeClock::Leave(Sleeper* self) {
  MutexLock lock(&mu_);
  while (self->wakers > 0) sleepers_changed_.Wait(&mu_);
  sleepers_.erase(std::remove(sleepers_.begin(), sleepers_.end(), self), sleepers_.end());
  sleepers_changed_.NotifyAll();
  return monotonic_ >= self->deadline;
}

void FakeClock::Advance(absl::Duration by) {
  std::vector<Sleeper*> due;
  {
    MutexLock lock(&mu_);
    monotonic_ += by;
    wall_ += by;
    for (Sleeper* sleeper : sleepers_) {
      if (sleeper->deadline > monotonic_) continue;
      ++sleeper->wakers;
      due.push_back(sleeper);
    }
  }
  for (const Sleeper* sleeper : due) {
    MutexLock lock(sleeper->mu);
    sleeper->cv->NotifyAll();
  }
  MutexLock lock(&mu_);
  for (Sleeper* sleeper : due) --sleeper->wakers;
  sleepers_changed_.NotifyAll();
}

void FakeClock::StepWallClock(absl::Duration by) {
  MutexLock lock(&mu_);
  wall_ += by;
}

int FakeClock::CountAsleepLocked() const {
  return static_cast<int>(std::count_if(
      sleepers_.begin(), sleepers_.end(),
      [now = monotonic_](const Sleeper* sleeper) { return sleeper->deadline > now; }));
}

void FakeClock::AwaitSleepers(int n) {
  MutexLock lock(&mu_);
  while (CountAsleepLocked() != n) sleepers_changed_.Wait(&mu_);
}

absl::Duration FakeClock::NextDeadline() const {
  MutexLock lock(&mu_);
  absl::Duration next = absl::InfiniteDuration();
  for (const Sleeper* sleeper : sleepers_) {
    if (sleeper->deadline > monotonic_) next = std::min(next, sleeper->deadline);
  }
  return next;
}

}  // namespace muster::base
