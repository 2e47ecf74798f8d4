// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/cancel_acks.h"

#include <algorithm>

namespace muster::initiator::batch {

absl::StatusOr<int> CancelAcks::Collect(uint64_t batch, const std::vector<std::string>& instances,
                                        absl::Duration patience,
                                        const std::function<absl::Status()>& cancel) {
  // Registers before `cancel`, so that no acknowledgement that it triggers is missed.
  {
    base::MutexLock lock(&mu_);
    ++awaited_[batch].waiting;
  }
  const absl::Status cancelled = cancel();
  const absl::Duration end = clock_->Monotonic() + patience;
  base::MutexLock lock(&mu_);
  Awaited& awaited = awaited_[batch];
  const auto count = [&] {
    return std::count_if(instances.begin(), instances.end(), [&](const std::string& instance) {
      return awaited.acknowledged.contains(instance);
    });
  };
  while (cancelled.ok() && count() < static_cast<int64_t>(instances.size())) {
    if (clock_->WaitUntil(&changed_, &mu_, end)) break;
  }
  const int acknowledged = static_cast<int>(count());
  if (--awaited.waiting == 0) awaited_.erase(batch);
  if (!cancelled.ok()) return cancelled;
  return acknowledged;
}

void CancelAcks::OnAcknowledged(uint64_t batch, const std::string& instance) {
  base::MutexLock lock(&mu_);
  const auto awaited = awaited_.find(batch);
  if (awaited == awaited_.end()) return;  // no call of Collect waits for it
  awaited->second.acknowledged.insert(instance);
  changed_.NotifyAll();
}

}  // namespace muster::initiator::batch
