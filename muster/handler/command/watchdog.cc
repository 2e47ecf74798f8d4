// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/watchdog.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>

#include "absl/strings/str_cat.h"

namespace muster::handler::command {

absl::StatusOr<std::unique_ptr<Watchdog>> Watchdog::Create(base::Clock* clock) {
  try {
    std::unique_ptr<Watchdog> watchdog(new Watchdog(clock));
    if (watchdog->fd() < 0) return absl::ResourceExhaustedError("too many open files");
    return watchdog;
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("no thread for a watchdog: ", error.what()));
  }
}

Watchdog::Watchdog(base::Clock* clock)
    : clock_(clock), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Watchdog::Arm(absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  deadline_ = deadline;
  if (state_ == State::kDeadline) SetStateLocked(State::kQuiet);
  changed_.NotifyAll();
}

void Watchdog::Disarm() {
  base::MutexLock lock(&mu_);
  deadline_ = absl::InfiniteDuration();
  changed_.NotifyAll();
  SetStateLocked(State::kQuiet);
}

void Watchdog::Interrupt() {
  base::MutexLock lock(&mu_);
  SetStateLocked(State::kInterrupted);
}

Watchdog::State Watchdog::state() const {
  base::MutexLock lock(&mu_);
  return state_;
}

Watchdog::State Watchdog::Await() {
  base::MutexLock lock(&mu_);
  while (state_ == State::kQuiet) settled_.Wait(&mu_);
  return state_;
}

void Watchdog::Run() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    if (clock_->Monotonic() >= deadline_) {
      deadline_ = absl::InfiniteDuration();
      if (state_ == State::kQuiet) SetStateLocked(State::kDeadline);
    }
    clock_->WaitUntil(&changed_, &mu_, deadline_);
  }
}

void Watchdog::SetStateLocked(State state) {
  state_ = state;
  settled_.NotifyAll();
  uint64_t count = 1;
  // Neither can fail but for a full or an empty counter, which is as good.
  const ssize_t done = state == State::kQuiet ? read(event_.get(), &count, sizeof(count))
                                              : write(event_.get(), &count, sizeof(count));
  static_cast<void>(done);
}

}  // namespace muster::handler::command
