// SPDX-License-Identifier: Apache-2.0

// RecordCursor: reads a database in which some blocks are damaged.
//
//   block       A          B          C          D
//            a … f      (damaged)   (damaged)   v … z
//   seek     ok         error "…offset B"  "…offset C"  ok
//
// RocksDB's own iterator ends at the first of them. Its error names the block, and the keys of a
// block are contiguous: so the cursor can search, byte by byte, for the last key that gives this
// very error. It passes over nothing that can be read, however many blocks are damaged.
//
// The cursor never reads blocks unchecked, though muster's records would reveal damage themselves:
// Debian builds RocksDB with assertions, and a senseless block would end the process.
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

// The records of a family in the order of their keys, except those in damaged blocks. Not
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

  // Valid to call once valid() is false. DataLoss: unreadable records may follow. Other errors are
  // the disk's or the system's: what follows is unknown.
  absl::Status status() const;
  // Stretches that could not be read.
  uint64_t gaps() const { return gaps_; }

 private:
  void Open(const std::string& from);
  bool AtDamage() const;
  // If the cursor stands at a stretch that cannot be read, moves behind it.
  void PassGap(std::string from);
  // The first key behind the block that would hold `from`. nullopt, and the cursor stands at an
  // error, when there is none, or the disk fails.
  std::optional<std::string> BehindBlock(const std::string& from);

  const Database* const database_;  // not owned
  const size_t family_;
  std::unique_ptr<::rocksdb::Iterator> it_;
  uint64_t gaps_ = 0;
};

}  // namespace muster::rocksdb
