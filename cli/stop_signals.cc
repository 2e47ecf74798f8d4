#include "cli/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "cli/exit_code.h"

namespace muster::cli {
namespace {

// Ends the waiting thread; nobody else sends it.
constexpr int kLeave = SIGUSR2;

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
  bool asked = false;
  while (true) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    if (signal == kLeave) return;
    if (asked) _exit(kInterrupted);
    asked = true;
    stop_.request_stop();
  }
}

}  // namespace muster::cli
