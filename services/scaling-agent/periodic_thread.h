// SPDX-License-Identifier: Apache-2.0

// PeriodicThread: runs the same step again and again on its own thread: once a period, and soon
// after Wake.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::scaling_agent {

struct Pace {
  absl::Duration period;                        // the most time between two steps
  absl::Duration least = absl::ZeroDuration();  // the least time, however often Wake is called
  // From Wake until the step, so that one step handles events that come together.
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

  // Runs the first step at once. A second call does nothing.
  void Start() ABSL_LOCKS_EXCLUDED(thread_mu_);
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the step that runs. Does nothing before Start or when called again.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_, thread_mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // False: the thread shall stop.
  bool AwaitTurn() ABSL_LOCKS_EXCLUDED(mu_);

  const Pace pace_;
  const std::function<void()> step_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  base::CondVar changed_;
  absl::Duration last_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  // When Wake was first called since the last step began.
  std::optional<absl::Duration> woken_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  base::Mutex thread_mu_;  // held while stopping, so that a second caller of Stop waits too
  std::thread thread_ ABSL_GUARDED_BY(thread_mu_);
};

}  // namespace muster::scaling_agent
