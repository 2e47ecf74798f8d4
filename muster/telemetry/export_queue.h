// SPDX-License-Identifier: Apache-2.0

// ExportQueue: what waits to be sent to a collector, and the thread that sends it.
//
//   any thread ─► Add ─► queue (bounded) ─► thread ─► send(batch)
//                   └─► full: dropped, counted
//
// The thread sends what has gathered within a moment, or during the call before, as a group commit
// does: a killed process loses little, and a busy one sends large batches, for a call costs as much
// as many records. A collector that is away or slow costs memory up to the bound, and then what is
// dropped; it never keeps the work waiting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::telemetry {

struct ExportLimits {
  size_t most_waiting = 32'768;
  size_t most_together = 2048;  // in one call
  // How long the first that waits lets others come, unless a call is full before.
  absl::Duration linger = absl::ZeroDuration();
  // After a call that failed; what waits is not sent before. The failed batch is dropped, for the
  // collector may have taken it.
  absl::Duration pause_after_failure = absl::Seconds(1);
  // From the end on, no call begins after this time.
  absl::Duration patience_at_end = absl::Seconds(1);
};

// Thread-safe, but for the destructor. T is movable.
template <typename T>
class ExportQueue {
 public:
  // Sends a batch, on the queue's thread. False: it failed.
  using Send = std::function<bool(std::vector<T>)>;
  // Told how many were dropped, from any thread.
  using OnDropped = std::function<void(size_t)>;

  // `clock` is not owned and outlives the queue.
  ExportQueue(const ExportLimits& limits, base::Clock* clock, Send send, OnDropped on_dropped)
      : limits_(limits),
        clock_(clock),
        send_(std::move(send)),
        on_dropped_(std::move(on_dropped)),
        thread_([this] { Run(); }) {}

  // Closes, and waits until what waits is sent: until the first call that fails, or the patience is
  // over, and in any case until the last call has ended. The rest is dropped.
  ~ExportQueue() {
    Close();
    thread_.join();
  }
  ExportQueue(const ExportQueue&) = delete;
  ExportQueue& operator=(const ExportQueue&) = delete;

  void Add(T item) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      base::MutexLock lock(&mu_);
      if (!closing_ && waiting_.size() < limits_.most_waiting) {
        waiting_.push_back(std::move(item));
        if (waiting_.size() == 1 || waiting_.size() == limits_.most_together) changed_.NotifyAll();
        return;
      }
    }
    on_dropped_(1);
  }

  // Begins the end, without waiting for it. What is added later is dropped.
  void Close() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    if (closing_) return;
    closing_ = true;
    ends_at_ = clock_->Monotonic() + limits_.patience_at_end;
    changed_.NotifyAll();
  }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_) {
    for (std::vector<T> batch = Take(); !batch.empty(); batch = Take()) {
      const size_t count = batch.size();
      if (send_(std::move(batch))) continue;
      on_dropped_(count);
      Pause();
    }
    DropRest();
  }

  // Empty: the queue is closed, and nothing waits or its patience is over.
  std::vector<T> Take() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    while (waiting_.empty() && !closing_) changed_.Wait(&mu_);
    LingerLocked();
    std::vector<T> batch;
    if (closing_ && clock_->Monotonic() >= ends_at_) return batch;
    if (waiting_.size() <= limits_.most_together) {
      batch.swap(waiting_);
      return batch;
    }
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(limits_.most_together);
    std::move(waiting_.begin(), end, std::back_inserter(batch));
    waiting_.erase(waiting_.begin(), end);
    return batch;
  }

  void LingerLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (limits_.linger <= absl::ZeroDuration()) return;
    const absl::Duration until = clock_->Monotonic() + limits_.linger;
    while (!closing_ && waiting_.size() < limits_.most_together) {
      if (clock_->WaitUntil(&changed_, &mu_, until)) return;
    }
  }

  // After a failure. A queue that is closed, or is closed meanwhile, sends no more.
  void Pause() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const absl::Duration until = clock_->Monotonic() + limits_.pause_after_failure;
    while (!closing_) {
      if (clock_->WaitUntil(&changed_, &mu_, until)) return;
    }
    ends_at_ = clock_->Monotonic();
  }

  void DropRest() ABSL_LOCKS_EXCLUDED(mu_) {
    size_t left = 0;
    {
      base::MutexLock lock(&mu_);
      left = std::exchange(waiting_, {}).size();
    }
    if (left > 0) on_dropped_(left);
  }

  const ExportLimits limits_;
  base::Clock* const clock_;  // not owned
  const Send send_;
  const OnDropped on_dropped_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<T> waiting_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration ends_at_ ABSL_GUARDED_BY(mu_);  // monotonic; while closing_
  std::thread thread_;                           // last: it uses all of these
};

}  // namespace muster::telemetry
