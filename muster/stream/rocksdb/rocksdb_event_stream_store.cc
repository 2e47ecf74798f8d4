// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/rocksdb/rocksdb_event_stream_store.h"

#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/stream/rocksdb/codec.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace muster::stream::rocksdb {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Retention is stored in µs; a part of one would make the stream differ from what was asked for.
StreamOptions Rounded(StreamOptions options) {
  options.retention = absl::Floor(options.retention, absl::Microseconds(1));
  return options;
}

}  // namespace

muster::rocksdb::DatabaseOptions StreamDatabase(const Options& options) {
  muster::rocksdb::DatabaseOptions database;
  database.families = {
      {.name = "meta", .write_buffer_bytes = 2 * kMiB},
      {.name = "events", .write_buffer_bytes = 32 * kMiB},
  };
  database.read_only = options.read_only;
  database.env = options.env;
  database.on_failure = options.on_failure;
  database.metrics = options.metrics;
  return database;
}

absl::StatusOr<std::unique_ptr<RocksDbEventStreamStore>> RocksDbEventStreamStore::Open(
    const std::string& dir, const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(auto database,
                          muster::rocksdb::Database::Open(dir, StreamDatabase(options)));
  std::unique_ptr<RocksDbEventStreamStore> store(
      new RocksDbEventStreamStore(std::move(database), options));
  MUSTER_RETURN_IF_ERROR(store->LoadStoreRecord());
  MUSTER_RETURN_IF_ERROR(store->LoadStreams());
  return store;
}

RocksDbEventStreamStore::RocksDbEventStreamStore(
    std::unique_ptr<muster::rocksdb::Database> database, const Options& options)
    : read_only_(options.read_only),
      database_(std::move(database)),
      sweeper_(read_only_ ? nullptr : std::make_unique<RetentionSweeper>(options.clock)),
      context_{database_.get(), options.clock, sweeper_.get()} {}

RocksDbEventStreamStore::~RocksDbEventStreamStore() = default;

absl::Status RocksDbEventStreamStore::LoadStoreRecord() {
  base::MutexLock admin(&admin_mu_);
  std::string value;
  const ::rocksdb::Status status =
      database_->db()->Get(::rocksdb::ReadOptions(), database_->family(kMeta), StoreKey(), &value);
  if (status.IsNotFound()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(status, database_->dir()));
  if (FormatVersionOf(value) > kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(database_->dir(), " was written by a newer muster"));
  }
  const std::optional<StoreRecord> record = DecodeStore(value);
  if (!record.has_value()) {
    return absl::DataLossError(
        absl::StrCat("the store record of ", database_->dir(), " is damaged"));
  }
  store_record_ = *record;
  return absl::OkStatus();
}

absl::Status RocksDbEventStreamStore::LoadStreams() {
  const std::unique_ptr<::rocksdb::Iterator> it(
      database_->db()->NewIterator(::rocksdb::ReadOptions(), database_->family(kMeta)));
  for (it->Seek(StreamKey("")); it->Valid(); it->Next()) {
    const std::string key = muster::rocksdb::Copy(it->key());
    const std::optional<std::string> name = NameIn(key);
    if (!name.has_value()) break;
    const std::optional<StreamRecord> record =
        DecodeStream(muster::rocksdb::Copy(it->value()), key);
    if (!record.has_value()) {
      return absl::DataLossError(
          absl::StrCat("the record of stream '", absl::CHexEscape(*name), "' is damaged"));
    }
    MUSTER_ASSIGN_OR_RETURN(Stream stream, Load(*name, *record));
    base::MutexLock lock(&mu_);
    streams_.emplace(*name, std::move(stream));
  }
  return muster::rocksdb::ToStatus(it->status(), absl::StrCat("streams of ", database_->dir()));
}

absl::StatusOr<RocksDbEventStreamStore::Stream> RocksDbEventStreamStore::Load(
    const std::string& name, const StreamRecord& record) {
  Stream stream{.record = record, .partitions = {}};
  for (int i = 0; i < record.options.partitions; ++i) {
    MUSTER_ASSIGN_OR_RETURN(
        std::shared_ptr<PartitionLog> log,
        PartitionLog::Load(context_, {record.number, static_cast<uint32_t>(i)},
                           absl::StrCat("stream '", name, "' partition ", i), record.options));
    stream.partitions.push_back(std::move(log));
  }
  return stream;
}

absl::Status RocksDbEventStreamStore::CheckWritable() const {
  if (!read_only_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(database_->dir(), " was opened read-only"));
}

absl::StatusOr<RocksDbEventStreamStore::Stream> RocksDbEventStreamStore::Find(
    absl::string_view name) const {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(name));
  base::MutexLock lock(&mu_);
  const auto found = streams_.find(name);
  if (found != streams_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no stream '", name, "'"));
}

absl::StatusOr<std::shared_ptr<PartitionLog>> RocksDbEventStreamStore::FindPartition(
    absl::string_view name, int partition) const {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(name));
  base::MutexLock lock(&mu_);
  const auto found = streams_.find(name);
  if (found == streams_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no stream '", name, "'"));
  }
  const auto& partitions = found->second.partitions;
  if (partition < 0 || static_cast<size_t>(partition) >= partitions.size()) {
    return absl::NotFoundError(absl::StrCat("stream '", name, "' has ", partitions.size(),
                                            " partitions, and no partition ", partition));
  }
  return partitions[static_cast<size_t>(partition)];
}

absl::Status RocksDbEventStreamStore::CheckRoom() const {
  base::MutexLock lock(&mu_);
  if (streams_.size() < static_cast<size_t>(kMaxStreams)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("there are ", kMaxStreams, " streams already"));
}

absl::Status RocksDbEventStreamStore::Create(absl::string_view stream,
                                             const StreamOptions& options) {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(stream));
  MUSTER_RETURN_IF_ERROR(ValidateOptions(options));
  MUSTER_RETURN_IF_ERROR(CheckWritable());
  base::MutexLock admin(&admin_mu_);
  if (const absl::StatusOr<Stream> there = Find(stream); there.ok()) {
    if (there->record.options == Rounded(options)) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("stream '", stream, "' exists with other options"));
  }
  MUSTER_RETURN_IF_ERROR(CheckRoom());
  const StreamRecord record{store_record_.next_stream++, Rounded(options)};
  const std::string key = StreamKey(stream);
  ::rocksdb::WriteBatch batch;
  batch.Put(database_->family(kMeta), key, EncodeStream(record, key));
  batch.Put(database_->family(kMeta), StoreKey(), EncodeStore(store_record_));
  MUSTER_RETURN_IF_ERROR(database_->Write(&batch, muster::rocksdb::Durability::kPower));
  MUSTER_ASSIGN_OR_RETURN(Stream made, Load(std::string(stream), record));
  base::MutexLock lock(&mu_);
  streams_.emplace(stream, std::move(made));
  return absl::OkStatus();
}

// The partitions take nothing more before the records go, so that no event is written behind them.
// After an error the stream is closed until the store is opened again, and there then or not.
absl::Status RocksDbEventStreamStore::Delete(absl::string_view stream) {
  MUSTER_RETURN_IF_ERROR(CheckWritable());
  base::MutexLock admin(&admin_mu_);
  MUSTER_ASSIGN_OR_RETURN(const Stream gone, Find(stream));
  for (const std::shared_ptr<PartitionLog>& log : gone.partitions) {
    log->Close();
    sweeper_->Forget(log);
  }
  const uint64_t number = gone.record.number;
  ::rocksdb::WriteBatch batch;
  batch.Delete(database_->family(kMeta), StreamKey(stream));
  batch.DeleteRange(database_->family(kMeta), FirstPartitionKey(number),
                    FirstPartitionKey(number + 1));
  batch.DeleteRange(database_->family(kEvents), FirstEventKey(number), FirstEventKey(number + 1));
  MUSTER_RETURN_IF_ERROR(database_->Write(&batch, muster::rocksdb::Durability::kPower));
  {
    base::MutexLock lock(&mu_);
    streams_.erase(streams_.find(stream));
  }
  return RemoveEventFiles(*database_, FirstEventKey(number), FirstEventKey(number + 1));
}

absl::StatusOr<std::vector<std::string>> RocksDbEventStreamStore::List() {
  std::vector<std::string> names;
  base::MutexLock lock(&mu_);
  for (const auto& [name, stream] : streams_) names.push_back(name);
  return names;
}

absl::StatusOr<StreamOptions> RocksDbEventStreamStore::Describe(absl::string_view stream) {
  MUSTER_ASSIGN_OR_RETURN(const Stream found, Find(stream));
  return found.record.options;
}

absl::StatusOr<PartitionExtent> RocksDbEventStreamStore::Extent(absl::string_view stream,
                                                                int partition) {
  MUSTER_ASSIGN_OR_RETURN(const auto log, FindPartition(stream, partition));
  return log->Extent();
}

absl::StatusOr<int64_t> RocksDbEventStreamStore::Append(absl::string_view stream, int partition,
                                                        absl::Span<const NewEvent> events) {
  MUSTER_RETURN_IF_ERROR(ValidateAppend(events));
  MUSTER_RETURN_IF_ERROR(CheckWritable());
  MUSTER_ASSIGN_OR_RETURN(const auto log, FindPartition(stream, partition));
  return log->Append(events);
}

absl::StatusOr<std::unique_ptr<PartitionReader>> RocksDbEventStreamStore::OpenReader(
    absl::string_view stream, int partition, int64_t offset) {
  MUSTER_RETURN_IF_ERROR(ValidateOffset(offset));
  MUSTER_ASSIGN_OR_RETURN(auto log, FindPartition(stream, partition));
  return ReadFrom(std::move(log), offset);
}

}  // namespace muster::stream::rocksdb
