// How muster configures RocksDB, and why.
#pragma once

#include "muster/rocks/database.h"
#include "rocksdb/options.h"

namespace rocksdb {
class Cache;
}  // namespace rocksdb

namespace muster::rocks {

// All but the env.
rocksdb::DBOptions DbOptionsFor(const DatabaseOptions& options);

// `cache` is shared by all families of one database, so that its size bounds them together.
rocksdb::ColumnFamilyOptions FamilyOptionsFor(const Family& family,
                                              const std::shared_ptr<rocksdb::Cache>& cache);

}  // namespace muster::rocks
