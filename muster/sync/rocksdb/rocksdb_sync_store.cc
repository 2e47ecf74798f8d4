// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/rocksdb/rocksdb_sync_store.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/rocksdb/repair_session.h"
#include "muster/sync/rocksdb/record_codec.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace muster::sync::rocksdb {

namespace {

using muster::rocksdb::ToSlice;

// Records are few and small.
constexpr size_t kWriteBufferBytes = size_t{1} << 20;
constexpr size_t kBlockCacheBytes = size_t{1} << 20;

}  // namespace

muster::rocksdb::DatabaseOptions SyncDatabase(const Options& options) {
  muster::rocksdb::DatabaseOptions database_options;
  database_options.families = {{.name = "records", .write_buffer_bytes = kWriteBufferBytes}};
  database_options.read_only = options.read_only;
  database_options.write_buffer_bytes = kWriteBufferBytes;
  database_options.env = options.env;
  database_options.on_failure = options.on_failure;
  database_options.metrics = options.metrics;
  database_options.block_cache_bytes = kBlockCacheBytes;
  return database_options;
}

absl::StatusOr<std::unique_ptr<RocksDbSyncStore>> RocksDbSyncStore::Open(const std::string& dir,
                                                                         const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<muster::rocksdb::Database> database,
                          muster::rocksdb::Database::Open(dir, SyncDatabase(options)));
  return std::unique_ptr<RocksDbSyncStore>(new RocksDbSyncStore(std::move(database)));
}

RocksDbSyncStore::RocksDbSyncStore(std::unique_ptr<muster::rocksdb::Database> database)
    : database_(std::move(database)) {}

base::Mutex* RocksDbSyncStore::MutexOf(absl::string_view key) {
  return &write_mu_[base::Fingerprint(key).low % kMutexes];
}

absl::StatusOr<sync::VersionedData> RocksDbSyncStore::Get(absl::string_view key) {
  MUSTER_RETURN_IF_ERROR(sync::ValidateKey(key));
  std::string value;
  const ::rocksdb::Status status =
      database_->db()->Get(::rocksdb::ReadOptions(), database_->family(0), ToSlice(key), &value);
  if (status.IsNotFound()) return sync::VersionedData();
  if (!status.ok()) {
    return muster::rocksdb::ToStatus(status, absl::StrCat("reading sync record '", key, "'"));
  }
  return DecodeRecord(key, value);
}

absl::StatusOr<bool> RocksDbSyncStore::TryWrite(absl::string_view key, absl::string_view data,
                                                uint64_t version) {
  MUSTER_RETURN_IF_ERROR(sync::ValidateKey(key));
  MUSTER_RETURN_IF_ERROR(sync::ValidateData(key, data));
  base::MutexLock lock(MutexOf(key));
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, Get(key));
  if (stored.version != version) return false;
  // The database counts each write, so a new record has a version that no removed one had.
  const uint64_t before =
      version == sync::kAbsent ? database_->db()->GetLatestSequenceNumber() : version;
  ::rocksdb::WriteBatch batch;
  batch.Put(database_->family(0), ToSlice(key), EncodeRecord(data, before + 1));
  const absl::Status written = database_->Write(&batch, muster::rocksdb::Durability::kPower);
  if (!written.ok()) {
    return base::Annotate(written, absl::StrCat("writing sync record '", key, "'"));
  }
  return true;
}

absl::StatusOr<bool> RocksDbSyncStore::TryDelete(absl::string_view key, uint64_t version) {
  MUSTER_RETURN_IF_ERROR(sync::ValidateKey(key));
  base::MutexLock lock(MutexOf(key));
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, Get(key));
  if (version == sync::kAbsent || stored.version != version) return false;
  ::rocksdb::WriteBatch batch;
  batch.Delete(database_->family(0), ToSlice(key));
  const absl::Status removed = database_->Write(&batch, muster::rocksdb::Durability::kPower);
  if (!removed.ok()) {
    return base::Annotate(removed, absl::StrCat("removing sync record '", key, "'"));
  }
  return true;
}

absl::StatusOr<os::CheckSummary> CheckSync(const std::string& dir,
                                           const os::CheckOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const auto session, muster::rocksdb::RepairSession::Open(
                                                  dir, "sync", SyncDatabase({}), options,
                                                  /*may_begin_anew=*/true));
  const auto check = [&](absl::string_view key, absl::string_view value) -> absl::Status {
    session->Count(1);
    const absl::Status decoded = DecodeRecord(key, value).status();
    if (!absl::IsDataLoss(decoded)) return decoded;
    os::Damage damage{.kind = "record",
                      .name = absl::StrCat("key '", absl::CHexEscape(key), "'"),
                      .why = std::string(decoded.message()),
                      .remedy = "the record is taken away"};
    damage.records = {session->Stored(0, key, value)};
    return session->Found(std::move(damage));
  };
  MUSTER_RETURN_IF_ERROR(session->ForEach(0, check));
  return session->Finish();
}

}  // namespace muster::sync::rocksdb
