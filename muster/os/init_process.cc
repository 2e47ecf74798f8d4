// SPDX-License-Identifier: Apache-2.0
#include "muster/os/init_process.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace muster::os {
namespace {

constexpr int kExitOfSignal = 128;  // plus its number, as shells tell it

// Faults of this process itself are not held back.
sigset_t SignalsToPass() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    sigdelset(&signals, fault);
  }
  return signals;
}

int ExitCodeOf(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitOfSignal + WTERMSIG(status);
}

// Returns the exit code of `program` once it has ended.
int ReapUntilEndOf(pid_t program, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    if (sigwaitinfo(&signals, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) {
      // A terminal sends to the whole process group: the program has it already, and takes a second
      // one for impatience.
      if (info.si_code != SI_KERNEL) kill(program, info.si_signo);
      continue;
    }
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == program) return ExitCodeOf(status);
    }
  }
}

}  // namespace

void RunAsInit() {
  if (getpid() != 1) return;
  const sigset_t signals = SignalsToPass();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  const pid_t program = fork();
  if (program > 0) _exit(ReapUntilEndOf(program, signals));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace muster::os
