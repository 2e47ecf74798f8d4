// UniqueIdGenerator: numbers that nobody else has (req. 54–56). It reserves a range of them in a
// shared record by compare-and-set and hands the range out from memory, so that 1000 ids cost one
// write. Batches get their numbers from it.
//
// The record holds the first number that is not reserved yet, in decimal digits; a record that does
// not exist stands for 1, unless its owner knows better: the store may have lost it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::sync {

struct UniqueIdOptions {
  int64_t range_size = 1000;  // at least 1
  int max_retries = 25;       // tries after the first one that lost its race; at least 0
  // The first id where the record does not exist; nullptr: 1. `lost`: this generator has seen it
  // before. Called with a lock held, maybe more than once.
  std::function<absl::StatusOr<int64_t>(bool lost)> begin_at = nullptr;
};

// Thread-safe. Any number of generators, in any number of processes, may share a key.
class UniqueIdGenerator {
 public:
  // `store` is not owned.
  UniqueIdGenerator(OptimisticSyncStore* store, absl::string_view key,
                    UniqueIdOptions options = UniqueIdOptions());

  // Each id once, over all generators of the key, from 1 upwards, with gaps: a process that dies
  // loses the rest of its range, at most range_size ids.
  // Aborted: lost the race max_retries + 1 times. DataLoss: the record is no number, and says what
  // it is. OutOfRange: int64 is used up. Else what the store answered. After an error the next call
  // tries to reserve anew, and nothing that is not reserved is ever handed out (D6).
  absl::StatusOr<int64_t> NextId();

 private:
  absl::Status ReserveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // True: the range is ours. False: somebody else was first.
  absl::StatusOr<bool> TryReserveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<int64_t> FirstFreeLocked(const VersionedData& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  OptimisticSyncStore* const store_;  // not owned
  const std::string key_;
  const UniqueIdOptions options_;

  // Held while a range is reserved: the others need that range, too.
  base::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t end_ ABSL_GUARDED_BY(mu_) = 0;  // the first id that is not ours; next_ == end_: none left
};

}  // namespace muster::sync
