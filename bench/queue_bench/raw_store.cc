// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/raw_store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/queue_bench/bodies.h"
#include "bench/queue_bench/check.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

namespace muster::queue_bench {
namespace {

void CheckRaw(const ::rocksdb::Status& status) {
  if (!status.ok()) Die(absl::StrCat("raw RocksDB: ", status.ToString()));
}

std::string Key(uint64_t number) { return absl::StrFormat("%016x", number); }

void WriteSynced(::rocksdb::DB& db, ::rocksdb::WriteBatch& batch) {
  ::rocksdb::WriteOptions synced;
  synced.sync = true;
  CheckRaw(db.Write(synced, &batch));
}

}  // namespace

RawStore::RawStore(const std::string& directory) {
  ::rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = ::rocksdb::kNoCompression;
  ::rocksdb::DB* opened = nullptr;
  CheckRaw(::rocksdb::DB::Open(options, directory, &opened));
  db_.reset(opened);
}

RawStore::~RawStore() = default;

void RawStore::Put(int /*caller*/, std::vector<std::string> bodies) {
  ::rocksdb::WriteBatch batch;
  uint64_t key = next_.fetch_add(bodies.size());
  for (const std::string& body : bodies) CheckRaw(batch.Put(Key(key++), body));
  WriteSynced(*db_, batch);
}

void RawStore::Take(int count) {
  ::rocksdb::WriteBatch batch;
  for (int i = 0; i < count; ++i) {
    const std::string key = Key(taken_++);
    std::string body;
    CheckRaw(db_->Get(::rocksdb::ReadOptions(), key, &body));
    if (body.size() != kBodyBytes) Die("raw RocksDB: a body is not whole");
    CheckRaw(batch.Delete(key));
  }
  WriteSynced(*db_, batch);
}

}  // namespace muster::queue_bench
