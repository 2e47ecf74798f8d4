// SPDX-License-Identifier: Apache-2.0

// SuspendedBatches: the batches that no worker fits for now, although their job has workers. Their
// items would go from one worker to the next for nothing, and with thousands of them the queue has
// no room for other batches. So the initiator suspends such a batch, and from then on a worker that
// an item of it does not fit takes the item out of the queue. Nothing is lost: the initiator ends
// the suspension once a worker fits, finds the items lost, and puts them again from its ledger.
//
// A worker that fits works on items of suspended batches as on others, so it does no harm that a
// worker learns of a suspension, and of its end, with a delay.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/item/batch_record.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::item {

// Thread-safe; any number of processes share the record in the sync store. Errors are the store's;
// each call can be repeated. Of more than kMaxRecorded batches the lowest numbers are suspended no
// more: their items go on to be given back.
class SuspendedBatches {
 public:
  // `store` is not owned.
  explicit SuspendedBatches(sync::OptimisticSyncStore* store)
      : record_(store, "suspended-batches") {}

  absl::Status Add(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Remove(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Reads what other processes have changed. DataLoss: the record is no list of numbers.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mu_);

  // As of the last call of the others.
  bool Contains(uint64_t batch) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Takes over what the record is now.
  absl::Status Take(absl::StatusOr<BatchRecord::Batches> batches) ABSL_LOCKS_EXCLUDED(mu_);

  const BatchRecord record_;
  mutable base::Mutex mu_;
  BatchRecord::Batches batches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::item
