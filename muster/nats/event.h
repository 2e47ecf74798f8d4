// Event: something that happens once.
#pragma once

#include "muster/base/mutex.h"

namespace muster::nats {

// Thread-safe.
class Event {
 public:
  void Set() {
    base::MutexLock lock(&mu_);
    set_ = true;
    changed_.NotifyAll();
  }
  void Await() {
    base::MutexLock lock(&mu_);
    while (!set_) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster::nats
