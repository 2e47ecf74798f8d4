#include "cli/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/string_view.h"
#include "cli/exit_code.h"

namespace muster::cli {
namespace {

// Ends the waiting thread; nobody else sends it.
constexpr int kLeave = SIGUSR2;

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
  const timespec grace = absl::ToTimespec(kStopGrace);
  do {
    signal = sigtimedwait(&set, nullptr, &grace);
  } while (signal < 0 && errno == EINTR);
  if (signal == kLeave) return;
  if (signal < 0) Complain("muster: a handler does not stop; leaving it behind\n");
  _exit(kInterrupted);
}

}  // namespace muster::cli
