// SPDX-License-Identifier: Apache-2.0
#include "muster/item/cancelled_batches.h"

#include <memory>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/sync/rocksdb/rocksdb_sync_store.h"

namespace muster::item {
namespace {

class CancelledBatchesTest : public ::testing::Test {
 protected:
  const os::TempDir dir_;
  const std::unique_ptr<sync::OptimisticSyncStore> store_ =
      sync::rocksdb::RocksDbSyncStore::Open(dir_ / "sync", {}).value();
};

TEST_F(CancelledBatchesTest, AreKnownToOthersOnceTheyHaveReadTheRecord) {
  CancelledBatches initiator(store_.get()), processor(store_.get());
  ASSERT_TRUE(initiator.Add(7).ok());
  ASSERT_TRUE(initiator.Add(7).ok());
  ASSERT_TRUE(initiator.Add(9).ok());
  EXPECT_TRUE(initiator.Contains(7));
  EXPECT_FALSE(processor.Contains(7));
  ASSERT_TRUE(processor.Refresh().ok());
  EXPECT_TRUE(processor.Contains(7));
  EXPECT_TRUE(processor.Contains(9));
  EXPECT_FALSE(processor.Contains(8));
}

TEST_F(CancelledBatchesTest, AreKnownFromHearsayToo) {
  CancelledBatches processor(store_.get());
  processor.Note(3);
  ASSERT_TRUE(processor.Refresh().ok());
  EXPECT_TRUE(processor.Contains(3));
}

TEST_F(CancelledBatchesTest, AreForgottenWhenThereAreTooMany) {
  CancelledBatches batches(store_.get());
  for (uint64_t batch = 1; batch <= kMaxRecorded + 1; ++batch) batches.Note(batch);
  EXPECT_FALSE(batches.Contains(1));
  EXPECT_TRUE(batches.Contains(2));
  EXPECT_TRUE(batches.Contains(kMaxRecorded + 1));
}

TEST_F(CancelledBatchesTest, HaveWhatRunsOfThemStop) {
  CancelledBatches batches(store_.get());
  const auto one = batches.Run(3, {}), two = batches.Run(3, {}), other = batches.Run(4, {});
  { const auto done = batches.Run(3, {}); }
  batches.Note(3);
  EXPECT_FALSE(one->token().stop_requested());
  batches.StopRunning(3);
  EXPECT_TRUE(one->token().stop_requested());
  EXPECT_TRUE(two->token().stop_requested());
  EXPECT_FALSE(other->token().stop_requested());
  EXPECT_TRUE(batches.Run(3, {})->token().stop_requested());
}

using CancelledBatchesDeathTest = CancelledBatchesTest;

TEST_F(CancelledBatchesDeathTest, OutliveWhatRunsOfThem) {
  auto batches = std::make_unique<CancelledBatches>(store_.get());
  auto running = batches->Run(3, {});
  EXPECT_DEATH(batches.reset(), "items that still run 1");
  running.reset();
}

TEST_F(CancelledBatchesTest, PassOnAStopThatIsAskedForElsewhere) {
  CancelledBatches batches(store_.get());
  std::stop_source drain;
  const auto running = batches.Run(3, drain.get_token());
  EXPECT_FALSE(running->token().stop_requested());
  drain.request_stop();
  EXPECT_TRUE(running->token().stop_requested());
}

TEST_F(CancelledBatchesTest, RefuseARecordThatIsNone) {
  ASSERT_TRUE(store_->TryWrite("cancelled-batches", "7,x", sync::kAbsent).value());
  CancelledBatches batches(store_.get());
  EXPECT_TRUE(absl::IsDataLoss(batches.Refresh()));
  EXPECT_TRUE(absl::IsDataLoss(batches.Add(8)));
}

}  // namespace
}  // namespace muster::item
