// SPDX-License-Identifier: Apache-2.0

// How muster configures RocksDB, and why.
#pragma once

#include <vector>

#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace muster::rocksdb {

// All but the env.
::rocksdb::DBOptions DbOptionsFor(const DatabaseOptions& options);

// RocksDB's own family and all of `options`, in the order in which they are numbered.
std::vector<::rocksdb::ColumnFamilyDescriptor> FamiliesOf(const DatabaseOptions& options);

}  // namespace muster::rocksdb
