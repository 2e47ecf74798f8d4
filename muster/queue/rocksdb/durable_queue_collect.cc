// SPDX-License-Identifier: Apache-2.0

// Collect of DurableQueue.
#include "muster/queue/rocksdb/durable_queue.h"

namespace muster::queue::rocksdb {

void DurableQueue::Collect(const std::atomic<bool>& cancelled) {
  CatchUp();
  const auto waiting = [this] {
    base::MutexLock lock(&mu_);
    return garbage_.size();
  };
  // Others add to it and take from it meanwhile; a step that cannot be written takes nothing.
  for (size_t left = waiting(); left > 0 && !cancelled;) {
    SharedEntry writing(&gate_);
    CollectGarbage();
    const size_t now = waiting();
    if (now >= left) return;
    left = now;
  }
}

}  // namespace muster::queue::rocksdb
