// How muster configures RocksDB, and why.
#pragma once

#include <vector>

#include "muster/rocks/database.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace muster::rocks {

// All but the env.
rocksdb::DBOptions DbOptionsFor(const DatabaseOptions& options);

// RocksDB's own family and all of `options`, in the order in which they are numbered.
std::vector<rocksdb::ColumnFamilyDescriptor> FamiliesOf(const DatabaseOptions& options);

}  // namespace muster::rocks
