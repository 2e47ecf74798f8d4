// SPDX-License-Identifier: Apache-2.0

// UniqueIdGenerator: ids that are unique across all processes. It reserves a range of
// ids in a shared record by compare-and-set and hands them out from memory, so that 1000 ids cost
// one write. Batches get their numbers from it.
//
// The record holds the first id that is not reserved yet, in decimal digits. If the record does not
// exist, the first id is 1 or what UniqueIdOptions::begin_at returns: the store may have lost the
// record.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
  // Returns the first id if the record does not exist; nullptr: 1. `lost`: this generator has seen
  // the record before. Called with a lock held, maybe more than once.
  std::function<absl::StatusOr<int64_t>(bool lost)> begin_at = nullptr;
  // Returns the highest id that is known to be given, from another source than the record, which
  // may be an older copy; 0: none. Called before the first range, and when the record has gone
  // back. std::nullopt: it cannot be told now; the record counts, and the next range asks again.
  // NextId fails with its error. As begin_at otherwise. nullptr: none is known.
  std::function<absl::StatusOr<std::optional<int64_t>>()> highest_given = nullptr;
};

// Thread-safe. Any number of generators, in any number of processes, may share a key.
class UniqueIdGenerator {
 public:
  // `store` is not owned.
  UniqueIdGenerator(OptimisticSyncStore* store, absl::string_view key,
                    UniqueIdOptions options = UniqueIdOptions());

  // Each id once, over all generators of the key, from 1 upwards, with gaps: a process that dies
  // loses the rest of its range, at most range_size ids.
  // Aborted: lost the race max_retries + 1 times. DataLoss: the record is no number; the message
  // quotes it. OutOfRange: int64 is used up. Otherwise what the store returned. After an error the
  // next call tries to reserve again; an id that is not reserved is never handed out.
  absl::StatusOr<int64_t> NextId() ABSL_LOCKS_EXCLUDED(mu_);

  // Hands out no more of the range in memory: one of its ids was given elsewhere, so the store may
  // have lost its reservation.
  void DropRange() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status ReserveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // True: the range is reserved. False: another process was first.
  // `least`: where the range begins at least; 0: not known yet.
  absl::StatusOr<bool> TryReserveLocked(int64_t* least) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<int64_t> FirstFreeLocked(const VersionedData& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `first`, which the record says, or behind what is given in spite of it.
  absl::StatusOr<int64_t> BeyondGivenLocked(int64_t first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  OptimisticSyncStore* const store_;  // not owned
  const std::string key_;
  const UniqueIdOptions options_;

  // Held while a range is reserved: other callers need that range, too.
  base::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t end_ ABSL_GUARDED_BY(mu_) = 0;  // the first id beyond the range; next_ == end_: none left
  bool asked_ ABSL_GUARDED_BY(mu_) =
      false;  // for the highest id that is given; and it was answered
};

}  // namespace muster::sync
