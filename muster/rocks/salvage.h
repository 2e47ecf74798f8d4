// Opening a database whose files are damaged, for a check that looks and for a repair that mends.
//
//   damaged             a check                      a repair
//   write-ahead log     reads what precedes it       keeps the logs, goes on with what precedes
//   block of a table    reads the other blocks       keeps all files, writes a new database of it
//   table as a whole,   cannot look                  keeps all files, goes on with the other tables
//   or list of tables
//
// RocksDB gives up a whole range for one damaged block. Here a cursor passes over it. Blocks are
// never read unchecked, though a record of muster would notice damage itself: Debian builds RocksDB
// with its assertions, and a block that makes no sense ends the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/rocks/database.h"

namespace rocksdb {
class Iterator;
}  // namespace rocksdb

namespace muster::rocks {

// Damage beneath the level of records.
struct FileDamage {
  std::string kind;  // "log", "table"; "files" when nothing can be read
  std::string why;
  std::string remedy;
  bool mendable = true;
};

struct SalvageOptions {
  std::function<absl::Status(const FileDamage&)> on_damage;
  // Set: repair. The folder to keep damaged files in; it lies on the database's file system.
  std::function<absl::StatusOr<std::string>()> keep_in;
  // Begin with an empty database when nothing can be read; otherwise that is an error.
  bool may_begin_anew = false;
};

// `options` as for the sound database. Read-only unless it is repaired. FailedPrecondition: some
// process has it open. NotFound: there is none. DataLoss: it cannot be looked at, or not be
// mended; on_damage was told.
absl::StatusOr<std::unique_ptr<Database>> OpenToSalvage(const std::string& dir,
                                                        const DatabaseOptions& options,
                                                        const SalvageOptions& salvage);

// The records of a family in the order of their keys, passing over what cannot be read. Not
// thread-safe; `database` outlives it.
class RecordCursor {
 public:
  // Starts at the first key that is not below `from`.
  RecordCursor(const Database* database, size_t family, absl::string_view from = "");
  ~RecordCursor();

  bool valid() const;
  absl::string_view key() const;
  absl::string_view value() const;
  void Next();

  // DataLoss when it ended where something may follow that cannot be read.
  absl::Status status() const;
  // Stretches that could not be read.
  uint64_t gaps() const { return gaps_; }

 private:
  void Open(const std::string& from);
  // Moves behind a stretch that cannot be read, if that is where it stands.
  void PassGap(std::string from);

  const Database* const database_;  // not owned
  const size_t family_;
  std::unique_ptr<rocksdb::Iterator> it_;
  uint64_t gaps_ = 0;
};

}  // namespace muster::rocks
