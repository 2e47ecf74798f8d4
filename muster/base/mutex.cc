// SPDX-License-Identifier: Apache-2.0
#include "muster/base/mutex.h"

#include <utility>

namespace muster::base {

KeyedMutex::Lock::Lock(KeyedMutex* mutex, std::string key) : mutex_(mutex), key_(std::move(key)) {
  MutexLock lock(&mutex_->mu_);
  while (!mutex_->held_.insert(key_).second) mutex_->released_.Wait(&mutex_->mu_);
}

KeyedMutex::Lock::~Lock() {
  MutexLock lock(&mutex_->mu_);
  mutex_->held_.erase(key_);
  mutex_->released_.NotifyAll();
}

}  // namespace muster::base
