// SPDX-License-Identifier: Apache-2.0

// BatchReader: reads the records of batches and of their items as a ledger's families have them
// (batch_codec.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/rocksdb/database.h"

namespace rocksdb {
class Snapshot;
}  // namespace rocksdb

namespace muster::ledger::rocksdb {

// Thread-safe. Statuses as BatchLedger.
class BatchReader {
 public:
  // `database` is not owned.
  explicit BatchReader(muster::rocksdb::Database* database) : database_(database) {}

  // The value under a key. NotFound and errors name `what`.
  absl::StatusOr<std::string> Read(size_t family, absl::string_view key,
                                   absl::string_view what) const;

  // The batch with its content. Nothing may write to it meanwhile: its record and its progress are
  // read one after the other.
  absl::StatusOr<ledger::Batch> Get(uint64_t number) const;
  // 0: there is no batch.
  absl::StatusOr<uint64_t> HighestNumber() const;

  // As BatchLedger.
  absl::StatusOr<ledger::BatchPage> ListBelow(uint64_t below, size_t max) const;
  absl::StatusOr<std::vector<ledger::ItemBoundary>> Items(uint64_t number, uint64_t first_index,
                                                          size_t max_items) const;

  // Calls `visit` with each batch whose record is sound and its job; an error of it ends the
  // reading.
  absl::Status ForEachJob(
      absl::FunctionRef<absl::Status(uint64_t number, std::string job)> visit) const;

 private:
  // The batch of a list, whose record is `value`. NotFound: it has no progress.
  absl::StatusOr<ledger::Batch> ReadListed(uint64_t number, absl::string_view value,
                                           const ::rocksdb::Snapshot* snapshot) const;

  muster::rocksdb::Database* const database_;  // not owned
};

}  // namespace muster::ledger::rocksdb
