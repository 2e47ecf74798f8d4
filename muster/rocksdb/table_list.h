// RocksDB's list of a database's tables (its MANIFEST, which CURRENT names), made again where it is
// lost.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/rocksdb/database.h"

namespace muster::rocksdb {

// Lists whatever can be read in `dir`, logs and tables, and drops the rest: call it on a copy that
// nobody has open. DataLoss: there were some, and none can be read. Other errors say nothing of the
// files.
absl::Status RebuildManifest(const std::string& dir, const DatabaseOptions& options);

}  // namespace muster::rocksdb
