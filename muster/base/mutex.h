// SPDX-License-Identifier: Apache-2.0

// Mutex, MutexLock and CondVar: thin wrappers of std::mutex and std::condition_variable that
// clang's -Wthread-safety understands. absl::Mutex is not used because Debian builds Abseil without
// the hooks that ThreadSanitizer needs, so every lock would be reported as a race.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"

namespace muster::base {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

// Holds a Mutex for a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mu_;  // not owned
};

// A condition variable over a Mutex. Waits may wake spuriously: call them in a loop. Waiting for a
// point in time goes through Clock (clock.h), so that tests can own time.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex* mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }

  // Returns false when `deadline` passed without a notification.
  template <typename Clock, typename Duration>
  bool WaitUntil(Mutex* mu, const std::chrono::time_point<Clock, Duration>& deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    const bool notified = cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }

  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

// Wakes those that wait at `condition` with `mutex`; the callback of a stop token, for example:
//   const std::stop_callback wake(stop, base::WakeAll{&mu_, &changed_});
// Takes the mutex, so that nobody is between a look at the token and the wait.
struct WakeAll {
  Mutex* mutex;        // not owned
  CondVar* condition;  // not owned

  void operator()() const {
    MutexLock lock(mutex);
    condition->NotifyAll();
  }
};

// KeyedMutex: a mutex for each key.

// Thread-safe.
class KeyedMutex {
 public:
  // Holds one key for a scope; another Lock of the same key waits.
  class Lock {
   public:
    // `mutex` is not owned.
    Lock(KeyedMutex* mutex, std::string key);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    KeyedMutex* const mutex_;  // not owned
    const std::string key_;
  };

 private:
  Mutex mu_;
  CondVar released_;
  std::set<std::string> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::base
