// SPDX-License-Identifier: Apache-2.0

// WriteGate: admits many writers at a time, or one that waits until all others have left.
#pragma once

#include "absl/base/thread_annotations.h"
#include "muster/base/check.h"
#include "muster/base/mutex.h"

namespace muster::queue::rocksdb {

// Thread-safe. Not re-entrant: a thread inside the gate must not enter again.
class WriteGate {
 public:
  void EnterShared() {
    base::MutexLock lock(&mu_);
    ++waiting_;
    while (exclusive_) changed_.Wait(&mu_);
    --waiting_;
    if (owed_ > 0 && --owed_ == 0) changed_.NotifyAll();
    ++writers_;
  }

  void LeaveShared() {
    base::MutexLock lock(&mu_);
    MUSTER_CHECK(writers_ > 0, "writers ", writers_);
    if (--writers_ == 0 && exclusive_) changed_.NotifyAll();
  }

  // Keeps further callers out, and returns when the last writer has left. Shared callers that
  // waited during one exclusive entry go before the next, so repeated exclusive entries never
  // starve them.
  void EnterExclusive() {
    base::MutexLock lock(&mu_);
    while (exclusive_ || owed_ > 0) changed_.Wait(&mu_);
    exclusive_ = true;
    while (writers_ > 0) changed_.Wait(&mu_);
  }

  void LeaveExclusive() {
    base::MutexLock lock(&mu_);
    MUSTER_CHECK(exclusive_ && writers_ == 0, "exclusive ", int{exclusive_}, ", writers ",
                 writers_);
    exclusive_ = false;
    owed_ = waiting_;
    changed_.NotifyAll();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int writers_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;  // to enter shared
  int owed_ ABSL_GUARDED_BY(mu_) = 0;  // of waiting_: to be let in before the next exclusive entry
  bool exclusive_ ABSL_GUARDED_BY(mu_) = false;
};

// Holds a WriteGate for the lifetime of the object.
class SharedEntry {
 public:
  explicit SharedEntry(WriteGate* gate) : gate_(gate) { gate_->EnterShared(); }
  ~SharedEntry() { gate_->LeaveShared(); }
  SharedEntry(const SharedEntry&) = delete;
  SharedEntry& operator=(const SharedEntry&) = delete;

 private:
  WriteGate* const gate_;  // not owned
};

class ExclusiveEntry {
 public:
  explicit ExclusiveEntry(WriteGate* gate) : gate_(gate) { gate_->EnterExclusive(); }
  ~ExclusiveEntry() { gate_->LeaveExclusive(); }
  ExclusiveEntry(const ExclusiveEntry&) = delete;
  ExclusiveEntry& operator=(const ExclusiveEntry&) = delete;

 private:
  WriteGate* const gate_;  // not owned
};

}  // namespace muster::queue::rocksdb
