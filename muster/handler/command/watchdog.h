// SPDX-License-Identifier: Apache-2.0

// Watchdog: a deadline under a Clock, as a file descriptor that poll() can wait for.
#pragma once

#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/os/file_descriptor.h"

namespace muster::handler::command {

// Thread-safe.
class Watchdog {
 public:
  enum class State { kQuiet, kDeadline, kInterrupted };

  // `clock` is not owned. ResourceExhausted when this process has no thread or no file descriptor
  // to spare.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Create(base::Clock* clock);
  ~Watchdog();

  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Quiet from now until clock->Monotonic() reaches `deadline`. Replaces an earlier deadline; an
  // interruption stays.
  void Arm(absl::Duration deadline);

  // Switches the deadline off and forgets an interruption.
  void Disarm();

  // Interrupts at once, and until Disarm.
  void Interrupt();

  State state() const;

  // Readable as long as the state is not kQuiet.
  int fd() const { return event_.get(); }

  // Blocks while the state is kQuiet; never returns kQuiet.
  State Await();

 private:
  explicit Watchdog(base::Clock* clock);

  void Run();
  void SetStateLocked(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;
  const os::FileDescriptor event_;
  mutable base::Mutex mu_;
  base::CondVar changed_;  // for the thread
  base::CondVar settled_;  // for threads in Await
  State state_ ABSL_GUARDED_BY(mu_) = State::kQuiet;
  absl::Duration deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster::handler::command
