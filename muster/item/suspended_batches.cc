// SPDX-License-Identifier: Apache-2.0
#include "muster/item/suspended_batches.h"

#include <utility>

#include "muster/base/status.h"

namespace muster::item {

absl::Status SuspendedBatches::Add(uint64_t batch) {
  return Take(record_.Change(
      [batch](BatchRecord::Batches* batches) { return batches->insert(batch).second; }));
}

absl::Status SuspendedBatches::Remove(uint64_t batch) {
  return Take(
      record_.Change([batch](BatchRecord::Batches* batches) { return batches->erase(batch) > 0; }));
}

absl::Status SuspendedBatches::Refresh() { return Take(record_.Read()); }

absl::Status SuspendedBatches::Take(absl::StatusOr<BatchRecord::Batches> batches) {
  MUSTER_RETURN_IF_ERROR(batches.status());
  base::MutexLock lock(&mu_);
  batches_ = *std::move(batches);
  return absl::OkStatus();
}

bool SuspendedBatches::Contains(uint64_t batch) const {
  base::MutexLock lock(&mu_);
  return batches_.contains(batch);
}

}  // namespace muster::item
