// SPDX-License-Identifier: Apache-2.0

// BatchRecord: a set of batches that any number of processes share, as one record of the sync
// store: their numbers in decimal, ascending, with commas between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::item {

// Batches of a record, the highest numbers: the youngest ones, but for initiators that are far
// apart.
inline constexpr size_t kMaxRecorded = 4096;

// Thread-safe. Errors are the store's; DataLoss: the record is no list of numbers.
class BatchRecord {
 public:
  using Batches = std::set<uint64_t>;

  // `store` is not owned. `name` is a key of it, and says in errors what the batches are:
  // "cancelled-batches".
  BatchRecord(sync::OptimisticSyncStore* store, std::string name);

  absl::StatusOr<Batches> Read() const;

  // Writes what `change` makes of the record, without the lowest numbers of too many, and answers
  // it. `change` answers whether it has changed anything; it is called anew after each race that is
  // lost. Aborted: others win each race.
  absl::StatusOr<Batches> Change(absl::FunctionRef<bool(Batches*)> change) const;

 private:
  absl::StatusOr<Batches> Parse(absl::string_view data) const;

  sync::OptimisticSyncStore* const store_;  // not owned
  const std::string name_;
};

// Takes the lowest numbers out of more than kMaxRecorded.
void Bound(BatchRecord::Batches* batches);

}  // namespace muster::item
