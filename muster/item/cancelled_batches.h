// SPDX-License-Identifier: Apache-2.0

// CancelledBatches: tells workers which batches were cancelled. Initiators write the batches into
// one record of the sync store. Workers learn of each by a BatchCancelledEvent, and read the record
// when they start and once in a while; they stop the running items of such a batch.
//
// It only saves effort: the ledger alone decides about a cancelled batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "muster/base/mutex.h"
#include "muster/item/batch_record.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::item {

// Thread-safe; any number of processes share the record. Of more than kMaxRecorded batches the
// lowest numbers are forgotten: work on their items is done in vain.
class CancelledBatches {
 public:
  // `store` is not owned.
  explicit CancelledBatches(sync::OptimisticSyncStore* store)
      : record_(store, "cancelled-batches") {}
  ~CancelledBatches();

  // Adds the batch to the record. Errors are the store's; adding it again is fine.
  absl::Status Add(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Reads the batches that others have added. DataLoss: the record is no list of numbers.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mu_);

  // Notes a batch that another process has cancelled. Stops nothing, so a thread that must not
  // block may call it.
  void Note(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Work on an item of a batch. Not thread-safe.
  class Running {
   public:
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    // Stops when the batch is cancelled, and when the token `also` that was given to Run stops.
    std::stop_token token() const { return stop_.get_token(); }

   private:
    friend class CancelledBatches;
    struct Relay {
      std::stop_source stop;
      void operator()() { stop.request_stop(); }
    };
    Running(CancelledBatches* owner, uint64_t batch, std::stop_token also);

    CancelledBatches* const owner_;  // not owned; outlives it
    std::stop_source stop_;
    std::multimap<uint64_t, std::stop_source>::iterator entry_;
    std::stop_callback<Relay> relay_;
  };
  std::unique_ptr<Running> Run(uint64_t batch, std::stop_token also) ABSL_LOCKS_EXCLUDED(mu_);

  // Stops the running items of the batch. Runs the stop callbacks of their handlers.
  void StopRunning(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  bool Contains(uint64_t batch) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void NoteLocked(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const BatchRecord record_;
  std::atomic<bool> any_ = false;  // none, mostly: then no caller locks
  mutable base::Mutex mu_;
  BatchRecord::Batches batches_ ABSL_GUARDED_BY(mu_);
  std::multimap<uint64_t, std::stop_source> running_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::item
