// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/rocksdb/rocksdb_sync_store.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/quarantine.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/database.h"
#include "muster/sync/unique_id_generator.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tests/conformance/sync/sync_store_conformance.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/os/collected_findings.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::sync::conformance {

namespace {

class RocksHome final : public StoreHome {
 public:
  std::unique_ptr<OptimisticSyncStore> Open() override {
    auto store = sync::rocksdb::RocksDbSyncStore::Open(dir_ / "sync");
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

 private:
  const os::TempDir dir_;
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(RocksDb, SyncStoreConformance,
                         ::testing::Values(Engine([] { return std::make_unique<RocksHome>(); })));

}  // namespace muster::sync::conformance

namespace muster::sync::rocksdb {

namespace {

using ::testing::HasSubstr;

class RocksDbSyncStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<RocksDbSyncStore> Open() {
    auto store = RocksDbSyncStore::Open(dir_.path());
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  // Overwrites `key`'s record with garbage, directly in the database.
  void Damage(const std::string& key) {
    auto database = muster::rocksdb::Database::Open(
        dir_.path(), muster::rocksdb::DatabaseOptions{.families = {{.name = "records"}}});
    ASSERT_TRUE(database.ok()) << database.status();
    ::rocksdb::WriteBatch batch;
    batch.Put((*database)->family(0), key, "garbage that is longer than a header");
    ASSERT_TRUE((*database)->Write(&batch, muster::rocksdb::Durability::kPower).ok());
  }

  const os::TempDir dir_;
};

TEST_F(RocksDbSyncStoreTest, NamesADamagedRecordAndKeepsTheRestUsable) {
  {
    auto store = Open();
    ASSERT_TRUE(*store->TryWrite("good", "1", sync::kAbsent));
    ASSERT_TRUE(*store->TryWrite("bad", "1", sync::kAbsent));
  }
  Damage("bad");
  auto store = Open();
  for (const absl::Status& status :
       {store->Get("bad").status(), store->TryWrite("bad", "2", 1).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'bad'"));
  }
  EXPECT_EQ(store->Get("good")->data, "1");
}

TEST_F(RocksDbSyncStoreTest, LetsOneOwnerIn) {
  auto owner = Open();
  EXPECT_EQ(RocksDbSyncStore::Open(dir_.path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(RocksDbSyncStoreTest, ReadsBesideTheOwnerButDoesNotWrite) {
  auto owner = Open();
  ASSERT_TRUE(*owner->TryWrite("k", "1", sync::kAbsent));
  auto reader = RocksDbSyncStore::Open(dir_.path(), {.read_only = true});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Get("k")->data, "1");
  EXPECT_EQ((*reader)->TryWrite("k", "2", 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(RocksDbSyncStoreTest, WhatWasAcknowledgedSurvivesAPowerCut) {
  muster::rocksdb::testing::FaultyEnv env;
  auto store = RocksDbSyncStore::Open(dir_ / "before", {.env = &env});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(*(*store)->TryWrite("k", "1", sync::kAbsent));
  ASSERT_TRUE(*(*store)->TryWrite("k", "2", 1));
  env.CopyAsAfterPowerCut(dir_ / "before", dir_ / "after");
  auto after = RocksDbSyncStore::Open(dir_ / "after");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)->Get("k")->data, "2");
}

const base::testing::RegisteredProcess drawer("drawer", [](const std::string& dir) {
  auto store = RocksDbSyncStore::Open(dir);
  sync::UniqueIdGenerator ids(store->get(), "ids", {.range_size = 1});
  while (true) base::testing::Send(absl::StrCat(ids.NextId().value()));
});

// The process reports an id only after the fsync: no reported id may come again.
TEST_F(RocksDbSyncStoreTest, IdsDrawnBeforeAKillNeverComeAgain) {
  base::testing::KillableProcess process("drawer", dir_.path());
  int64_t last = 0;
  for (int n = 0; const auto id = process.Receive(); ++n) {
    ASSERT_TRUE(absl::SimpleAtoi(*id, &last));
    if (n < 100) continue;
    ASSERT_TRUE(process.Kill());
  }
  ASSERT_GE(last, 100);
  auto store = Open();
  sync::UniqueIdGenerator ids(store.get(), "ids", {.range_size = 1});
  EXPECT_GT(*ids.NextId(), last);
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SyncCheckTest, NamesADamagedRecordAndTakesItAway) {
  const os::TempDir root;
  const std::string dir = root / "sync";
  {
    const auto store = RocksDbSyncStore::Open(dir).value();
    ASSERT_TRUE(store->TryWrite("good", "1", sync::kAbsent).value());
    ASSERT_TRUE(store->TryWrite("bad", "1", sync::kAbsent).value());
  }
  const auto check = [&](os::Quarantine* quarantine) {
    os::CollectedFindings findings;
    const auto summary = CheckSync(dir, {&findings, quarantine});
    EXPECT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary.ok() ? summary->damaged : 0, findings.all.size());
    return findings.names();
  };
  EXPECT_THAT(check(nullptr), IsEmpty());
  {
    const auto database = muster::rocksdb::Database::Open(dir, SyncDatabase({})).value();
    ASSERT_TRUE(database->db()->Put({}, database->family(0), "bad", "longer than a header").ok());
  }
  EXPECT_THAT(check(nullptr), ElementsAre("key 'bad'"));
  os::Quarantine quarantine(root.path());
  EXPECT_THAT(check(&quarantine), ElementsAre("key 'bad'"));
  EXPECT_THAT(check(nullptr), IsEmpty());
  const auto store = RocksDbSyncStore::Open(dir).value();
  EXPECT_EQ(store->Get("good")->data, "1");
  EXPECT_EQ(store->Get("bad")->version, sync::kAbsent);
}

}  // namespace

}  // namespace muster::sync::rocksdb
