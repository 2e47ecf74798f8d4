#include "muster/base/sleep.h"

#include <utility>

#include "muster/base/mutex.h"

namespace muster::base {

bool SleepUnlessStopped(Clock* clock, absl::Duration duration, const std::stop_token& stop) {
  const absl::Duration deadline = clock->Monotonic() + duration;
  Mutex mu;
  CondVar stopped;
  // Under the lock, so that the request cannot fall between the check and the wait below.
  const std::stop_callback wake(stop, [&] {
    MutexLock lock(&mu);
    stopped.NotifyAll();
  });
  MutexLock lock(&mu);
  while (!stop.stop_requested()) {
    if (clock->Monotonic() >= deadline) return true;
    clock->WaitUntil(&stopped, &mu, deadline);
  }
  return false;
}

}  // namespace muster::base
