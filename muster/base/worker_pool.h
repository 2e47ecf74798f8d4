// SPDX-License-Identifier: Apache-2.0

// WorkerPool: runs tasks on a fixed number of threads, in the order in which they came.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"

namespace muster::base {

// Thread-safe. The caller of Add bounds how many tasks wait.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  // Runs the tasks that wait, and returns when the last has ended.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // `task` must not throw. A task may add others, but not while the pool is destroyed.
  void Add(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::vector<std::thread> threads_;  // last: they use all of these
};

}  // namespace muster::base
