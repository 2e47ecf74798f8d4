// PeriodicThread: takes the same step again and again, on a thread of its own: once a period, and
// soon when it is woken.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::scaling_agent {

struct Pace {
  absl::Duration period;                        // between two steps, at the most
  absl::Duration least = absl::ZeroDuration();  // and at the least, however often it is woken
  // From when it is woken until the step, so that one step sees what comes together.
  absl::Duration gather = absl::ZeroDuration();
};

// Thread-safe.
class PeriodicThread {
 public:
  // `clock` is not owned. A step may Wake the thread, but not Stop it.
  PeriodicThread(Pace pace, std::function<void()> step, base::Clock* clock);
  ~PeriodicThread();  // Stop()s
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

  // Takes the first step at once. Again it does nothing.
  void Start();
  void Wake();
  // Waits for the step that runs. Again, or before Start, it does nothing.
  void Stop();

 private:
  void Run();
  // False: it shall stop.
  bool AwaitTurn();

  const Pace pace_;
  const std::function<void()> step_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  base::CondVar changed_;
  absl::Duration last_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  // The first time since the last step.
  std::optional<absl::Duration> woken_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  base::Mutex thread_mu_;  // held while stopping, so that whoever comes second waits
  std::thread thread_ ABSL_GUARDED_BY(thread_mu_);
};

}  // namespace muster::scaling_agent
