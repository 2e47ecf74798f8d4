// SPDX-License-Identifier: Apache-2.0
#include "muster/os/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace muster::os {
namespace {

// Ends the waiting thread; only the destructor sends it.
constexpr int kLeave = SIGUSR2;

// Signals that come so close together are one wish: timeout(1), for one, sends its signal to the
// program and once more to the program's group.
constexpr absl::Duration kOneStop = absl::Milliseconds(500);

// Straight to the descriptor: other threads may hold the locks of streams.
void Complain(absl::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nothing else can be done
}

sigset_t Awaited() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, kLeave);
  return set;
}

}  // namespace

StopSignals::StopSignals(StopOptions options) : options_(std::move(options)) {
  const sigset_t set = Awaited();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::thread([this] { Wait(); });
}

StopSignals::~StopSignals() {
  pthread_kill(waiter_.native_handle(), kLeave);
  waiter_.join();
}

void StopSignals::Wait() {
  const sigset_t set = Awaited();
  int signal = 0;
  do {
    if (sigwait(&set, &signal) != 0) return;
    if (signal == SIGUSR1 && options_.on_user_signal) options_.on_user_signal();
  } while (signal != kLeave && signal != SIGINT && signal != SIGTERM);
  if (signal == kLeave) return;
  stop_.request_stop();
  const absl::Time first = absl::Now();
  do {
    const timespec grace =
        absl::ToTimespec(std::max(absl::ZeroDuration(), first + options_.grace - absl::Now()));
    signal = sigtimedwait(&set, nullptr, &grace);
    if (signal == kLeave) return;
  } while (signal < 0 ? errno == EINTR : signal == SIGUSR1 || absl::Now() < first + kOneStop);
  Complain(absl::StrCat(signal < 0 ? options_.when_late : options_.when_hurried, "\n"));
  _exit(options_.exit_code);
}

}  // namespace muster::os
