// CancelledBatches: which batches were given up, for those who work on their items. Initiators
// write them into one record of the sync store; workers hear of each by a BatchCancelledEvent, and
// read the record when they start and once in a while.
//
// Nothing depends on it but effort: what becomes of a cancelled batch, its ledger says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::cancellation {

// Batches that are remembered, the highest numbers: items of others are worked on in vain.
inline constexpr size_t kMaxRemembered = 4096;

// Thread-safe; any number of processes share the record.
class CancelledBatches {
 public:
  // `store` is not owned.
  explicit CancelledBatches(sync::OptimisticSyncStore* store) : store_(store) {}

  // Writes it down for everybody. Errors are the store's; doing it again is fine.
  absl::Status Add(uint64_t batch);

  // Reads what others have written. DataLoss: the record is no list of numbers.
  absl::Status Refresh();

  // Somebody said so.
  void Note(uint64_t batch);

  bool Contains(uint64_t batch) const;

 private:
  void NoteLocked(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  sync::OptimisticSyncStore* const store_;  // not owned
  std::atomic<bool> any_ = false;           // most of the time there is none: then nobody locks
  mutable base::Mutex mu_;
  std::set<uint64_t> batches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::cancellation
