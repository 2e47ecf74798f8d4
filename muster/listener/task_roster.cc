// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/task_roster.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster::listener {

int TaskRoster::Enter(int wanted) {
  base::MutexLock lock(&mu_);
  if (dismissed_) return 0;
  const int entered = std::clamp(wanted, 0, std::max(0, max_tasks_ - active_));
  active_ += entered;
  most_active_ = std::max(most_active_, active_);
  return entered;
}

TaskRoster::Departure TaskRoster::TryLeave(uint64_t seen_wakes, bool last_stays) {
  base::MutexLock lock(&mu_);
  if (!dismissed_) {
    if (wakes_ != seen_wakes) return Departure::kPollAgain;
    if (last_stays && active_ == 1) return Departure::kStay;
  }
  LeaveLocked();
  return Departure::kLeft;
}

bool TaskRoster::LeaveIfDismissed() {
  base::MutexLock lock(&mu_);
  if (!dismissed_ && !IsSurplusLocked()) return false;
  LeaveLocked();
  return true;
}

void TaskRoster::Leave() {
  base::MutexLock lock(&mu_);
  LeaveLocked();
}

void TaskRoster::LeaveLocked() {
  MUSTER_CHECK(active_ > 0, "tasks ", active_, ", with messages ", working_);
  if (--active_ == 0) left_.NotifyAll();
}

uint64_t TaskRoster::wakes() const {
  base::MutexLock lock(&mu_);
  return wakes_;
}

void TaskRoster::Sleep(absl::Duration delay, uint64_t seen_wakes) {
  const absl::Duration deadline = clock_->Monotonic() + delay;
  base::MutexLock lock(&mu_);
  if (dismissed_ || IsSurplusLocked() || wakes_ != seen_wakes) return;
  Sleeper self;
  const auto place = sleepers_.insert(sleepers_.end(), &self);
  while (!self.woken && !clock_->WaitUntil(&self.cv, &mu_, deadline)) {
  }
  if (!self.woken) sleepers_.erase(place);
}

int TaskRoster::Wake(int64_t tasks) {
  base::MutexLock lock(&mu_);
  ++wakes_;
  WakeLocked(tasks);
  return active_;
}

void TaskRoster::WakeLocked(int64_t tasks) {
  for (; tasks > 0 && !sleepers_.empty(); --tasks) {
    Sleeper* const sleeper = sleepers_.front();
    sleepers_.pop_front();
    sleeper->woken = true;
    sleeper->cv.NotifyAll();
  }
}

void TaskRoster::Dismiss() {
  base::MutexLock lock(&mu_);
  dismissed_ = true;
  WakeLocked(static_cast<int64_t>(sleepers_.size()));
}

void TaskRoster::Recall() {
  base::MutexLock lock(&mu_);
  dismissed_ = false;
}

void TaskRoster::SetMaxTasks(int max_tasks) {
  base::MutexLock lock(&mu_);
  max_tasks_ = max_tasks;
  WakeLocked(active_ - max_tasks_);
}

bool TaskRoster::dismissed() const {
  base::MutexLock lock(&mu_);
  return dismissed_;
}

bool TaskRoster::AwaitNone(absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  while (active_ > 0) {
    if (clock_->WaitUntil(&left_, &mu_, deadline)) return active_ == 0;
  }
  return true;
}

bool TaskRoster::BeginWork() {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(working_ < active_, "tasks ", active_, ", with messages ", working_);
  ++working_;
  return std::exchange(counted_on_, false);
}

void TaskRoster::EndWork() {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(working_ > 0, "tasks ", active_, ", with messages ", working_);
  --working_;
}

int TaskRoster::CountOnEmptyHands() {
  base::MutexLock lock(&mu_);
  counted_on_ = active_ > working_;
  return active_ - working_;
}

int TaskRoster::max_tasks() const {
  base::MutexLock lock(&mu_);
  return max_tasks_;
}

int TaskRoster::active() const {
  base::MutexLock lock(&mu_);
  return active_;
}

int TaskRoster::most_active() const {
  base::MutexLock lock(&mu_);
  return most_active_;
}

bool TaskRoster::has_idle_hands() const {
  base::MutexLock lock(&mu_);
  return active_ < max_tasks_ || !sleepers_.empty();
}

absl::Status TaskThreads::Start(std::function<void()> task) {
  base::MutexLock lock(&mu_);
  ReapLocked();
  Thread& place = threads_.emplace_back();
  try {
    place.thread = std::thread([&place, task = std::move(task)] {
      task();
      place.ended = true;
    });
  } catch (const std::system_error& error) {
    threads_.pop_back();
    return absl::ResourceExhaustedError(absl::StrCat("no thread for a task: ", error.what()));
  }
  return absl::OkStatus();
}

void TaskThreads::ReapLocked() {
  for (auto place = threads_.begin(); place != threads_.end();) {
    if (!place->ended) {
      ++place;
      continue;
    }
    place->thread.join();
    place = threads_.erase(place);
  }
}

void TaskThreads::Join() {
  std::list<Thread> threads;
  {
    base::MutexLock lock(&mu_);
    threads.swap(threads_);
  }
  for (Thread& place : threads) place.thread.join();
}

}  // namespace muster::listener
