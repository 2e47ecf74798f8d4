#include "cli/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"

namespace muster::cli {
namespace {

// Ends the waiting thread; nobody else sends it.
constexpr int kLeave = SIGUSR2;

// Signals that come so close together are one wish: timeout(1), for one, sends its signal to the
// program and once more to the program's group.
constexpr absl::Duration kOneStop = absl::Milliseconds(500);

// Straight to the descriptor: other threads may hold the locks of streams.
void Complain(absl::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody is left to tell
}

sigset_t Awaited() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, kLeave);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
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
  } while (signal != kLeave && signal != SIGINT && signal != SIGTERM);
  if (signal == kLeave) return;
  stop_.request_stop();
  const absl::Time first = absl::Now();
  do {
    const timespec grace =
        absl::ToTimespec(std::max(absl::ZeroDuration(), first + kStopGrace - absl::Now()));
    signal = sigtimedwait(&set, nullptr, &grace);
    if (signal == kLeave) return;
  } while (signal < 0 ? errno == EINTR : absl::Now() < first + kOneStop);
  Complain(signal < 0 ? "muster: a handler does not stop; leaving it behind\n"
                      : "muster: stopped at once; run the same command again to go on\n");
  _exit(kInterrupted);
}

}  // namespace muster::cli
