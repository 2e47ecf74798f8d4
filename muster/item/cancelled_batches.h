// CancelledBatches: which batches were given up, for those who work on their items. Initiators
// write them into one record of the sync store; workers hear of each by a BatchCancelledEvent, and
// read the record when they start and once in a while. What runs meanwhile is told to stop.
//
// Nothing depends on it but effort: what becomes of a cancelled batch, its ledger says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::item {

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

  // Somebody said so. Stops nothing: it may be called from where nothing may block.
  void Note(uint64_t batch);

  // Work on an item of a batch. Not thread-safe.
  class Running {
   public:
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    // Requested when the batch is given up, and when `also` is that was given to Run.
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
  std::unique_ptr<Running> Run(uint64_t batch, std::stop_token also);

  // Has what runs of the batch stop. Calls what its handlers have registered for that.
  void StopRunning(uint64_t batch);

  bool Contains(uint64_t batch) const;

 private:
  void NoteLocked(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  sync::OptimisticSyncStore* const store_;  // not owned
  std::atomic<bool> any_ = false;           // most of the time there is none: then nobody locks
  mutable base::Mutex mu_;
  std::set<uint64_t> batches_ ABSL_GUARDED_BY(mu_);
  std::multimap<uint64_t, std::stop_source> running_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::item
