// RocksDB's outcomes in muster's terms.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace muster::rocksdb {

// `context` goes before the message and should name what was being done to which thing.
//   NotFound            no such key
//   DataLoss            a block or record is corrupt
//   ResourceExhausted   the disk is full, or a quota or memory limit was met
//   FailedPrecondition  the database was opened read-only, or its options do not fit its files
//   Unavailable         input or output failed, or RocksDB is busy: try again
//   Internal            anything else
absl::Status ToStatus(const ::rocksdb::Status& status, absl::string_view context);

// The disk is full, or a quota was met.
bool IsDiskFull(const ::rocksdb::Status& status);

}  // namespace muster::rocksdb
