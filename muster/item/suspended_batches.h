// SuspendedBatches: the batches that no worker fits for now, although their job has workers. Their
// items would go from one worker to the next for nothing, and with thousands of them the queue has
// no room for other batches. So the initiator suspends such a batch, and from then on a worker that
// an item of it does not fit takes the item out of the queue. Nothing is lost: the initiator ends
// the suspension once a worker fits, finds the items lost, and puts them again from its ledger.
//
// A worker that fits works on items of suspended batches as on others, so it does no harm that a
// worker learns of a suspension, and of its end, with a delay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::item {

// Suspended batches at a time, the highest numbers: items of others go on to be given back.
inline constexpr size_t kMaxSuspended = 4096;

// Thread-safe; any number of processes share the record in the sync store. Errors are the store's;
// each call can be repeated.
class SuspendedBatches {
 public:
  // `store` is not owned.
  explicit SuspendedBatches(sync::OptimisticSyncStore* store) : store_(store) {}

  absl::Status Add(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Remove(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Reads what other processes have changed. DataLoss: the record is no list of numbers.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mu_);

  // As of the last call of the others.
  bool Contains(uint64_t batch) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Batches = std::set<uint64_t>;

  // `change` answers whether it changed anything.
  absl::Status Change(absl::FunctionRef<bool(Batches*)> change) ABSL_LOCKS_EXCLUDED(mu_);

  sync::OptimisticSyncStore* const store_;  // not owned
  mutable base::Mutex mu_;
  Batches batches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::item
