// SPDX-License-Identifier: Apache-2.0
#include "muster/rocksdb/options.h"

#include <cstdarg>
#include <memory>

#include "rocksdb/cache.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/write_buffer_manager.h"

namespace muster::rocksdb {
namespace {

// A replay of at most this much log is what a restart waits for.
constexpr uint64_t kMaxLogBytes = uint64_t{192} << 20;

// Replaces RocksDB's own log file, which serves no reader and does harm: Debian builds RocksDB with
// assertions, and one of them ends the process at the second line that a full disk does not take.
// Nor may a read-only open touch the directory.
class NullLogger final : public ::rocksdb::Logger {
 public:
  using ::rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

::rocksdb::WALRecoveryMode RecoveryModeOf(LogReplay replay) {
  switch (replay) {
    case LogReplay::kRefuseDamage:
      return ::rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
    case LogReplay::kStopAtDamage:
      return ::rocksdb::WALRecoveryMode::kPointInTimeRecovery;
    case LogReplay::kSkipDamage:
      return ::rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  }
  return ::rocksdb::WALRecoveryMode::kAbsoluteConsistency;
}

// `cache` is shared by all families of one database, so that its size bounds them together.
::rocksdb::ColumnFamilyOptions FamilyOptionsFor(const Family& family,
                                                const std::shared_ptr<::rocksdb::Cache>& cache) {
  ::rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(::rocksdb::NewBloomFilterPolicy(10, false));
  // Filters and indexes count against the cache: otherwise a deep queue grows them without bound.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.format_version = 5;

  ::rocksdb::ColumnFamilyOptions cf;
  cf.write_buffer_size = family.write_buffer_bytes;
  cf.max_write_buffer_number = 3;
  cf.merge_operator = family.merge;
  cf.compression = ::rocksdb::kLZ4Compression;
  if (family.use == FamilyUse::kBodies) {
    cf.compression = ::rocksdb::kNoCompression;
    table.block_size = 16 << 10;
  }
  cf.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
  return cf;
}

}  // namespace

::rocksdb::DBOptions DbOptionsFor(const DatabaseOptions& options) {
  ::rocksdb::DBOptions db;
  db.create_if_missing = options.create_if_missing && !options.read_only;
  db.create_missing_column_families = !options.read_only;
  db.max_total_wal_size = kMaxLogBytes;
  // RocksDB's own choice ends the replay at the first damaged record, in silence, and all that was
  // acknowledged after it is gone. Here only a log's end may be missing, which is what a crash
  // leaves, and damage is an error. One thing cannot be told apart: a damaged length that reaches
  // beyond the end, within the log's last 32 KiB, looks like a record that was cut short. Log files
  // must not be recycled (they are not unless one asks for it): then a checksum that does not match
  // could be a former log's record, and ends the replay in silence again.
  db.wal_recovery_mode = RecoveryModeOf(options.log_replay);
  // A background sync while a file grows keeps a flush from stalling the writers' own syncs.
  db.bytes_per_sync = 1 << 20;
  db.write_buffer_manager = std::make_shared<::rocksdb::WriteBufferManager>(
      options.write_buffer_bytes, nullptr, /*allow_stall=*/false);
  db.max_background_jobs = 2;
  db.max_open_files = 512;
  // RocksDB starts 16 threads for each family at each open, to open files of which there are few.
  db.max_file_opening_threads = 1;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.info_log = std::make_shared<NullLogger>();
  return db;
}

std::vector<::rocksdb::ColumnFamilyDescriptor> FamiliesOf(const DatabaseOptions& options) {
  const auto cache = ::rocksdb::NewLRUCache(options.block_cache_bytes);
  std::vector<::rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(::rocksdb::kDefaultColumnFamilyName, ::rocksdb::ColumnFamilyOptions());
  for (const Family& family : options.families) {
    families.emplace_back(family.name, FamilyOptionsFor(family, cache));
  }
  return families;
}

}  // namespace muster::rocksdb
