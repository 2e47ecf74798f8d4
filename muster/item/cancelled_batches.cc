// SPDX-License-Identifier: Apache-2.0
#include "muster/item/cancelled_batches.h"

#include <utility>
#include <vector>

#include "muster/base/check.h"
#include "muster/base/status.h"

namespace muster::item {

CancelledBatches::~CancelledBatches() {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(running_.empty(), "items that still run ", running_.size());
}

absl::Status CancelledBatches::Add(uint64_t batch) {
  Note(batch);
  return record_
      .Change([batch](BatchRecord::Batches* batches) { return batches->insert(batch).second; })
      .status();
}

absl::Status CancelledBatches::Refresh() {
  MUSTER_ASSIGN_OR_RETURN(const BatchRecord::Batches batches, record_.Read());
  base::MutexLock lock(&mu_);
  for (const uint64_t batch : batches) NoteLocked(batch);
  return absl::OkStatus();
}

void CancelledBatches::Note(uint64_t batch) {
  base::MutexLock lock(&mu_);
  NoteLocked(batch);
}

void CancelledBatches::NoteLocked(uint64_t batch) {
  batches_.insert(batch);
  Bound(&batches_);
  any_ = true;
}

CancelledBatches::Running::Running(CancelledBatches* owner, uint64_t batch, std::stop_token also)
    : owner_(owner), relay_(std::move(also), Relay{stop_}) {
  base::MutexLock lock(&owner_->mu_);
  entry_ = owner_->running_.emplace(batch, stop_);
}

CancelledBatches::Running::~Running() {
  base::MutexLock lock(&owner_->mu_);
  owner_->running_.erase(entry_);
}

std::unique_ptr<CancelledBatches::Running> CancelledBatches::Run(uint64_t batch,
                                                                 std::stop_token also) {
  std::unique_ptr<Running> running(new Running(this, batch, std::move(also)));
  // The batch was cancelled between the worker's check and this one.
  if (Contains(batch)) running->stop_.request_stop();
  return running;
}

// Requests the stop without the lock: a stopped item may end at once, and remove itself from the
// list.
void CancelledBatches::StopRunning(uint64_t batch) {
  std::vector<std::stop_source> stops;
  {
    base::MutexLock lock(&mu_);
    const auto [begin, end] = running_.equal_range(batch);
    for (auto entry = begin; entry != end; ++entry) stops.push_back(entry->second);
  }
  for (std::stop_source& stop : stops) stop.request_stop();
}

bool CancelledBatches::Contains(uint64_t batch) const {
  if (!any_) return false;
  base::MutexLock lock(&mu_);
  return batches_.contains(batch);
}

}  // namespace muster::item
