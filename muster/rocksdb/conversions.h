// SPDX-License-Identifier: Apache-2.0

// Conversions between RocksDB's outcomes and bytes, and Abseil's.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rocksdb/slice.h"

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace muster::rocksdb {

// `context` goes before the message and should name the operation and the thing it was done to.
//   NotFound            no such key
//   DataLoss            a block or record is corrupt
//   ResourceExhausted   the disk is full, or a quota or memory limit was met
//   FailedPrecondition  the database was opened read-only, or its options do not fit its files
//   Unavailable         input or output failed, or RocksDB is busy: try again
//   Internal            anything else
absl::Status ToStatus(const ::rocksdb::Status& status, absl::string_view context);

// The disk is full, or a quota was met.
bool IsDiskFull(const ::rocksdb::Status& status);

inline ::rocksdb::Slice ToSlice(absl::string_view text) { return {text.data(), text.size()}; }
inline absl::string_view ToView(const ::rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// Copies the bytes that an iterator stands on, while RocksDB writes to memory beside them.
// ThreadSanitizer does not see how RocksDB orders the two; it ignores this copy, and only this
// copy.
std::string Copy(const ::rocksdb::Slice& slice);

}  // namespace muster::rocksdb
