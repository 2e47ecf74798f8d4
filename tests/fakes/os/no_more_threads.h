// SPDX-License-Identifier: Apache-2.0

// NoMoreThreads: while it lives, this process can start no thread, as under a limit of its threads.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace muster::os {

// A thread whose stack is larger than any address space fails to start as one beyond a limit does,
// also for root, whom RLIMIT_NPROC does not bind. Threads that run go on.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{1} << 60);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace muster::os
