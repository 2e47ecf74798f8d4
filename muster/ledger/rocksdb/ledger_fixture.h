// SPDX-License-Identifier: Apache-2.0

// LedgerFixture: a ledger in a folder of its own, for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/perf_level.h"

namespace muster::ledger::rocksdb {

class LedgerFixture : public ::testing::Test {
 protected:
  LedgerFixture() { Open(); }

  void Open() {
    ledger_.reset();
    auto opened = RocksDbBatchLedger::Open(dir_.path(), {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    ledger_ = *std::move(opened);
  }

  // Puts `value` in the place of a batch's record, directly in the database.
  void Overwrite(size_t family, uint64_t number, const std::string& value) {
    ledger_.reset();
    {
      auto database = muster::rocksdb::Database::Open(
          dir_.path(), {.families = {{"batches"}, {"progress"}, {"items"}, {"requests"}}});
      ASSERT_TRUE(database.ok()) << database.status();
      std::string key;
      muster::rocksdb::AppendKey(number, &key);
      ASSERT_TRUE((*database)->db()->Put({}, (*database)->family(family), key, value).ok());
    }
    Open();
  }

  void Create(uint64_t number, const std::string& request_id = "r") {
    Batch batch;
    batch.number = number;
    batch.request_id = request_id;
    batch.job = "retail";
    batch.job_definition = "name: retail";
    batch.source_path = "/in.csv";
    batch.source_header = base::Fingerprint("header");
    batch.created = absl::FromUnixMillis(1234567);
    batch.sla = absl::Minutes(5);
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }

  void Remove(uint64_t number) {
    ASSERT_TRUE(ledger_->Cancel(number, absl::FromUnixSeconds(9), "").ok());
    ASSERT_TRUE(ledger_->BeginToDropItems(number).ok());
    ASSERT_TRUE(ledger_->Delete(number).ok());
  }

  static std::vector<ItemBoundary> Run(uint64_t first, uint64_t count) {
    std::vector<ItemBoundary> items;
    for (uint64_t i = first; i < first + count; ++i) {
      items.push_back({i * 100, 100, static_cast<int64_t>(i) * 5 + 2, 5,
                       base::Fingerprint(absl::StrCat("item ", i)), i % 7 == 3});
    }
    return items;
  }

  void Complete(uint64_t number) {
    ASSERT_TRUE(ledger_->Seal(number, 0).ok());
    ASSERT_TRUE(ledger_->MarkComplete(number, absl::FromUnixSeconds(9)).ok());
  }

  // Numbers and states of a page.
  std::string Listed(uint64_t below = UINT64_MAX, size_t max = 100) {
    const auto page = ledger_->ListBelow(below, max);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> batches;
    for (const Batch& batch : page->batches) {
      batches.push_back(absl::StrCat(batch.number, " ", BatchStateName(batch.state)));
    }
    if (page->next_below != 0) batches.push_back(absl::StrCat("more below ", page->next_below));
    return absl::StrJoin(batches, ", ");
  }

  // Bytes of keys and values that `call` reads.
  static uint64_t BytesRead(const std::function<void()>& call) {
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kEnableCount);
    ::rocksdb::get_perf_context()->Reset();
    call();
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kDisable);
    const ::rocksdb::PerfContext& read = *::rocksdb::get_perf_context();
    return read.get_read_bytes + read.iter_read_bytes;
  }

  // Deleted records that iterators of `call` pass.
  static uint64_t DeletedPassed(const std::function<void()>& call) {
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kEnableCount);
    ::rocksdb::get_perf_context()->Reset();
    call();
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kDisable);
    return ::rocksdb::get_perf_context()->internal_delete_skipped_count;
  }

  const os::TempDir dir_;
  std::unique_ptr<RocksDbBatchLedger> ledger_;
};

}  // namespace muster::ledger::rocksdb
