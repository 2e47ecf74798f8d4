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

}  // namespace muster::base
