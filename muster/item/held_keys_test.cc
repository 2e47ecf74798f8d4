// SPDX-License-Identifier: Apache-2.0
#include "muster/item/held_keys.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/sync/rocksdb/rocksdb_sync_store.h"

namespace muster::item {
namespace {

const queue::QueueId kQueue{"local", "payments-in-0"};
const queue::QueueId kOther{"local", "payments-in-1"};
const absl::Time kSince = absl::FromUnixMillis(1'700'000'000'123);

class HeldKeyStoreTest : public ::testing::Test {
 protected:
  std::vector<std::string> Keys(const queue::QueueId& queue = kQueue) {
    std::vector<std::string> keys;
    const std::vector<HeldKey> read = HeldKeyStore(store_.get()).Read(queue).value();
    for (const HeldKey& held : read) keys.push_back(held.key);
    return keys;
  }

  const os::TempDir dir_;
  const std::unique_ptr<sync::OptimisticSyncStore> store_ =
      sync::rocksdb::RocksDbSyncStore::Open(dir_ / "sync", {}).value();
  HeldKeyStore keys_{store_.get()};
};

TEST_F(HeldKeyStoreTest, TellsAnotherProcessWhatIsHeldOfEachPartition) {
  ASSERT_TRUE(keys_.Hold(kQueue, {"k1", 3, 7, kSince}).ok());
  ASSERT_TRUE(keys_.Hold(kQueue, {std::string("\0\xff", 2), 3, 8, kSince}).ok());
  ASSERT_TRUE(keys_.Hold(kOther, {"k1", 4, 0, kSince}).ok());
  const std::vector<HeldKey> held = HeldKeyStore(store_.get()).Read(kQueue).value();
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].key, "k1");
  EXPECT_EQ(held[0].batch, 3u);
  EXPECT_EQ(held[0].item, 7u);
  EXPECT_EQ(held[0].since, kSince);
  EXPECT_EQ(held[1].key, std::string("\0\xff", 2));
  EXPECT_EQ(Keys(kOther), std::vector<std::string>{"k1"});
}

TEST_F(HeldKeyStoreTest, KeepsTheTimeOfAKeyThatIsHeldAgainForTheSameItem) {
  ASSERT_TRUE(keys_.Hold(kQueue, {"k", 3, 7, kSince}).ok());
  ASSERT_TRUE(keys_.Hold(kQueue, {"k", 3, 7, kSince + absl::Hours(1)}).ok());
  const std::vector<HeldKey> held = keys_.Read(kQueue).value();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].since, kSince);
}

TEST_F(HeldKeyStoreTest, ReleasesAKeyOnlyForTheItemThatItIsHeldFor) {
  ASSERT_TRUE(keys_.Hold(kQueue, {"k", 3, 7, kSince}).ok());
  ASSERT_TRUE(keys_.Hold(kQueue, {"k", 3, 9, kSince}).ok());
  EXPECT_TRUE(keys_.Release(kQueue, {HeldKey{"k", 3, 7, kSince}}).value().empty());
  EXPECT_EQ(Keys(), std::vector<std::string>{"k"});
  EXPECT_EQ(keys_.Release(kQueue, {HeldKey{"k", 3, 9, kSince}}).value().size(), 1u);
  EXPECT_TRUE(Keys().empty());
}

// A nats-server of 2.15 that was killed brought back the keys of a record that had been written
// twice and removed.
TEST_F(HeldKeyStoreTest, LeavesAnEmptyRecordBehindTheLastKeyUntilTheQueueGoes) {
  ASSERT_TRUE(keys_.Hold(kQueue, {"k", 3, 7, kSince}).ok());
  ASSERT_TRUE(keys_.Release(kQueue, {HeldKey{"k", 3, 7, kSince}}).ok());
  const absl::StatusOr<sync::VersionedData> left = store_->Get("held/local/payments-in-0");
  EXPECT_NE(left->version, sync::kAbsent);
  EXPECT_EQ(left->data, "");
  EXPECT_TRUE(keys_.Forget(kQueue).ok());
  EXPECT_EQ(store_->Get("held/local/payments-in-0")->version, sync::kAbsent);
  EXPECT_TRUE(keys_.Forget(kQueue).ok()) << "there is none";
}

TEST_F(HeldKeyStoreTest, RefusesAKeyTooManyAndKeepsTheOthers) {
  for (int i = 0; i < kMaxHeldKeys; ++i) {
    ASSERT_TRUE(
        keys_.Hold(kQueue, {absl::StrCat("k", i), 3, static_cast<uint64_t>(i), kSince}).ok());
  }
  const absl::Status full = keys_.Hold(kQueue, {"one more", 3, 999, kSince});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(Keys().size(), static_cast<size_t>(kMaxHeldKeys));
  EXPECT_TRUE(keys_.Hold(kQueue, {"k0", 3, 0, kSince}).ok());
}

TEST_F(HeldKeyStoreTest, RefusesLongKeysBeforeTheRecordIsTooLargeForTheStore) {
  int held = 0;
  absl::Status status;
  while (status.ok() && held <= kMaxHeldKeys) {
    status = keys_.Hold(kQueue, {absl::StrCat(held++, std::string(250, 'k')), 3, 0, kSince});
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST_F(HeldKeyStoreTest, SaysThatARecordIsDamaged) {
  ASSERT_TRUE(store_->TryWrite("held/local/payments-in-0", "\xff\xff\xff", sync::kAbsent).value());
  EXPECT_EQ(keys_.Read(kQueue).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::item
