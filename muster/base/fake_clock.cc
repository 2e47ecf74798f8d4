#include "muster/base/fake_clock.h"

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
  Sleeper self{cv, mu, deadline};
  {
    MutexLock lock(&mu_);
    if (monotonic_ >= deadline) return true;
    sleepers_.push_back(&self);
    sleepers_changed_.NotifyAll();
  }
  // Advance takes `mu` before it notifies, so that the wake-up cannot fall between the check above
  // and this wait.
  cv->Wait(mu);
  MutexLock lock(&mu_);
  sleepers_.erase(std::remove(sleepers_.begin(), sleepers_.end(), &self), sleepers_.end());
  sleepers_changed_.NotifyAll();
  return monotonic_ >= deadline;
}

void FakeClock::Advance(absl::Duration by) {
  std::vector<Sleeper> due;
  {
    MutexLock lock(&mu_);
    monotonic_ += by;
    wall_ += by;
    for (const Sleeper* sleeper : sleepers_) {
      if (sleeper->deadline <= monotonic_) due.push_back(*sleeper);
    }
  }
  for (const Sleeper& sleeper : due) {
    MutexLock lock(sleeper.mu);
    sleeper.cv->NotifyAll();
  }
}

void FakeClock::StepWallClock(absl::Duration by) {
  MutexLock lock(&mu_);
  wall_ += by;
}

void FakeClock::AwaitSleepers(int n) {
  MutexLock lock(&mu_);
  while (static_cast<int>(sleepers_.size()) != n) sleepers_changed_.Wait(&mu_);
}

absl::Duration FakeClock::NextDeadline() const {
  MutexLock lock(&mu_);
  absl::Duration next = absl::InfiniteDuration();
  for (const Sleeper* sleeper : sleepers_) next = std::min(next, sleeper->deadline);
  return next;
}

}  // namespace muster::base
