// SPDX-License-Identifier: Apache-2.0

// SigPipeBlock: keeps SIGPIPE from a thread while it writes to a pipe or a socket that the other
// side may have closed. The signal would end the process, and how the process takes it is not a
// library's to change.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace muster::base {

// Lives on the stack of one thread. At its end a signal that came meanwhile is gone, unless the
// thread had the signal blocked before.
class SigPipeBlock {
 public:
  SigPipeBlock() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigPipeBlock() {
    if (sigismember(&before_, SIGPIPE) != 0) return;
    const timespec at_once{};
    while (sigtimedwait(&sigpipe_, nullptr, &at_once) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigPipeBlock(const SigPipeBlock&) = delete;
  SigPipeBlock& operator=(const SigPipeBlock&) = delete;

 private:
  sigset_t sigpipe_{};
  sigset_t before_{};
};

}  // namespace muster::base
