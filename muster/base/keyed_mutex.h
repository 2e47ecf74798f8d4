// KeyedMutex: one mutex for each key that somebody holds.
#pragma once

#include <set>
#include <string>

#include "muster/base/mutex.h"

namespace muster::base {

// Thread-safe.
class KeyedMutex {
 public:
  // Holds one key for a scope: whoever wants the same one waits.
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
