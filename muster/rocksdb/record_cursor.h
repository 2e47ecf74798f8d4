// RecordCursor: reads a database some of whose blocks are damaged.
//
//   block       A          B          C          D
//            a … f      (damaged)   (damaged)   v … z
//   seek     ok         error "…offset B"  "…offset C"  ok
//
// RocksDB's own iterator ends at the first of them. Its error names the block, and the keys of a
// block are a stretch without holes: so the last key that gives this very error can be looked for
// byte by byte, and nothing that can be read is passed over, however many blocks are damaged.
//
// Blocks are never read unchecked, though a record of muster would notice damage itself: Debian
// builds RocksDB with its assertions, and a block that makes no sense ends the process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/rocksdb/database.h"

namespace rocksdb {
class Iterator;
}  // namespace rocksdb

namespace muster::rocksdb {

// The records of a family in the order of their keys, but for those in damaged blocks. Not
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

  // To be asked once it is not valid. DataLoss: something may follow that cannot be read. Other
  // errors are the disk's, or the system's: nothing is known of what follows.
  absl::Status status() const;
  // Stretches that could not be read.
  uint64_t gaps() const { return gaps_; }

 private:
  void Open(const std::string& from);
  bool AtDamage() const;
  // Moves behind a stretch that cannot be read, if that is where it stands.
  void PassGap(std::string from);
  // The first key behind the block that `from` would be in. nullopt, and the cursor stands at an
  // error, when there is none, or the disk fails.
  std::optional<std::string> BehindBlock(const std::string& from);

  const Database* const database_;  // not owned
  const size_t family_;
  std::unique_ptr<::rocksdb::Iterator> it_;
  uint64_t gaps_ = 0;
};

}  // namespace muster::rocksdb
