// SPDX-License-Identifier: Apache-2.0

// Opens a database with damaged files, for a check that only reads and for a repair.
//
//   damaged             a check                      a repair
//   write-ahead log     reads what precedes it       keeps the logs, goes on with what precedes
//   block of a table    reads the other blocks       keeps all files, writes a new database of it
//   table as a whole,   cannot look                  keeps all files, goes on with the other tables
//   or list of tables
//
// RocksDB gives up a whole range for one damaged block; a RecordCursor passes over it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/rocksdb/database.h"

namespace muster::rocksdb {

// Damage beneath the level of records.
struct FileDamage {
  std::string kind;  // "log", "table"; "files" when nothing can be read
  std::string why;
  std::string remedy;
  bool mendable = true;
};

struct SalvageOptions {
  std::function<absl::Status(const FileDamage&)> on_damage;
  // Set: repair. Returns the folder for damaged files, which is durable and on the database's file
  // system.
  std::function<absl::StatusOr<std::string>()> keep_in;
  // Begin with an empty database when nothing can be read; otherwise that is an error.
  bool may_begin_anew = false;
};

// `options` as for the sound database. Opens read-only unless it repairs. FailedPrecondition: a
// process has the database open. NotFound: there is none. DataLoss: it cannot be read, or cannot be
// repaired; on_damage was called with the damage.
absl::StatusOr<std::unique_ptr<Database>> OpenToSalvage(const std::string& dir,
                                                        const DatabaseOptions& options,
                                                        const SalvageOptions& salvage);

}  // namespace muster::rocksdb
