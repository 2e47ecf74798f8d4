// WriteGate: many writers at a time, or one that needs all others to have finished.
#pragma once

#include "absl/base/thread_annotations.h"
#include "muster/base/mutex.h"

namespace muster::queue::rocksdb {

// Thread-safe. Not re-entrant: who is in must not enter again.
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
    if (--writers_ == 0 && exclusive_) changed_.NotifyAll();
  }

  // From now on nobody enters; returns when the last of the others has left. Who waited while
  // somebody was alone goes first, so that a caller who is alone again and again keeps nobody out.
  void EnterExclusive() {
    base::MutexLock lock(&mu_);
    while (exclusive_ || owed_ > 0) changed_.Wait(&mu_);
    exclusive_ = true;
    while (writers_ > 0) changed_.Wait(&mu_);
  }

  void LeaveExclusive() {
    base::MutexLock lock(&mu_);
    exclusive_ = false;
    owed_ = waiting_;
    changed_.NotifyAll();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int writers_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;  // to enter shared
  int owed_ ABSL_GUARDED_BY(mu_) = 0;     // of them, those who go before the next exclusive one
  bool exclusive_ ABSL_GUARDED_BY(mu_) = false;
};

// In the gate for a scope.
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
