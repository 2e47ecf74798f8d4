#include "muster/sync/rocksdb/check.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/shelf.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/database.h"
#include "muster/sync/rocksdb/rocks_sync_store.h"
#include "rocksdb/db.h"
#include "tests/fakes/os/collected.h"

namespace muster::sync::rocksdb {
namespace {

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
