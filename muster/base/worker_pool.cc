// SPDX-License-Identifier: Apache-2.0
#include "muster/base/worker_pool.h"

#include <utility>

namespace muster::base {

WorkerPool::WorkerPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Add(std::function<void()> task) {
  MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
}

void WorkerPool::Run() {
  MutexLock lock(&mu_);
  for (;;) {
    while (tasks_.empty() && !stopping_) changed_.Wait(&mu_);
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    mu_.Unlock();
    task();
    task = nullptr;  // what it holds may lock, too
    mu_.Lock();
  }
}

}  // namespace muster::base
