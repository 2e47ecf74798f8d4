// SPDX-License-Identifier: Apache-2.0

// RocksDbSyncStore: the OptimisticSyncStore of a single machine, in a RocksDB directory of its own.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"
#include "muster/os/quarantine.h"
#include "muster/rocksdb/database.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"

namespace muster::sync::rocksdb {

struct Options {
  // Sees the records as of its opening, can be open beside the owner, and refuses to write.
  bool read_only = false;
  ::rocksdb::Env* env = nullptr;  // not owned; nullptr = the machine's
  std::function<void(const absl::Status&)> on_failure = nullptr;  // as DatabaseOptions
  telemetry::Registry* metrics = nullptr;                         // as DatabaseOptions
};

// One family, of records.
muster::rocksdb::DatabaseOptions SyncDatabase(const Options& options);

// Thread-safe. An acknowledged write has been fsynced.
class RocksDbSyncStore final : public sync::OptimisticSyncStore {
 public:
  // Creates `dir` if need be. FailedPrecondition: another process has it open. NotFound: read-only
  // and not there.
  static absl::StatusOr<std::unique_ptr<RocksDbSyncStore>> Open(const std::string& dir,
                                                                const Options& options = Options());

  absl::StatusOr<sync::VersionedData> Get(absl::string_view key) override;
  absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                uint64_t version) override;
  absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) override;

 private:
  // Writers of different records share an fsync, except the few that share a mutex by chance.
  static constexpr size_t kMutexes = 16;

  explicit RocksDbSyncStore(std::unique_ptr<muster::rocksdb::Database> database);

  base::Mutex* MutexOf(absl::string_view key);

  const std::unique_ptr<muster::rocksdb::Database> database_;
  // Held from reading a record until it is written: the compare and the set are one step.
  std::array<base::Mutex, kMutexes> write_mu_;
};

// Checks every record of a sync store. A repair takes a damaged record away: the user of its key
// must make it again.
//
// NotFound: there is no store. FailedPrecondition: a process has it open, or a newer muster wrote a
// record. DataLoss: it cannot be read; the findings say why.
absl::StatusOr<os::CheckSummary> CheckSync(const std::string& dir, const os::CheckOptions& options);

}  // namespace muster::sync::rocksdb
