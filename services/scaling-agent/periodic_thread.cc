// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/periodic_thread.h"

#include <algorithm>
#include <utility>

namespace muster::scaling_agent {

PeriodicThread::PeriodicThread(Pace pace, std::function<void()> step, base::Clock* clock)
    : pace_(pace), step_(std::move(step)), clock_(clock) {}

PeriodicThread::~PeriodicThread() { Stop(); }

void PeriodicThread::Start() {
  base::MutexLock lock(&thread_mu_);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void PeriodicThread::Wake() {
  base::MutexLock lock(&mu_);
  if (!woken_.has_value()) woken_ = clock_->Monotonic();
  changed_.NotifyAll();
}

void PeriodicThread::Stop() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  base::MutexLock lock(&thread_mu_);
  if (thread_.joinable()) thread_.join();
}

void PeriodicThread::Run() {
  while (AwaitTurn()) step_();
}

bool PeriodicThread::AwaitTurn() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    // After Wake only the gather time counts, even if the period ends earlier: otherwise a step at
    // the period's end would split events that belong together.
    const absl::Duration due = woken_.has_value()
                                   ? std::max(last_ + pace_.least, *woken_ + pace_.gather)
                                   : last_ + pace_.period;
    if (clock_->Monotonic() >= due) break;
    clock_->WaitUntil(&changed_, &mu_, due);
  }
  woken_.reset();
  last_ = clock_->Monotonic();
  return !stopping_;
}

}  // namespace muster::scaling_agent
