// SPDX-License-Identifier: Apache-2.0
#include "muster/item/suspended_batches.h"

#include <numeric>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::item {
namespace {

class SuspendedBatchesTest : public ::testing::Test {
 protected:
  sync::testing::MemorySyncStore store_;
  SuspendedBatches initiator_{&store_};
  SuspendedBatches processor_{&store_};
};

TEST_F(SuspendedBatchesTest, LearnOfTheBatchesOfOtherProcesses) {
  ASSERT_TRUE(initiator_.Add(7).ok());
  ASSERT_TRUE(initiator_.Add(7).ok());
  EXPECT_TRUE(initiator_.Contains(7));
  EXPECT_FALSE(processor_.Contains(7));
  ASSERT_TRUE(processor_.Refresh().ok());
  EXPECT_TRUE(processor_.Contains(7));
  EXPECT_FALSE(processor_.Contains(8));
}

TEST_F(SuspendedBatchesTest, LearnOfTheEndOfASuspension) {
  ASSERT_TRUE(initiator_.Add(7).ok());
  ASSERT_TRUE(processor_.Refresh().ok());
  ASSERT_TRUE(initiator_.Remove(7).ok());
  ASSERT_TRUE(initiator_.Remove(7).ok());
  ASSERT_TRUE(processor_.Refresh().ok());
  EXPECT_FALSE(processor_.Contains(7));
}

TEST_F(SuspendedBatchesTest, KeepWhatAnotherInitiatorAddedMeanwhile) {
  SuspendedBatches other(&store_);
  ASSERT_TRUE(other.Add(8).ok());
  store_.LoseNextWrites(1);
  ASSERT_TRUE(initiator_.Add(7).ok());
  ASSERT_TRUE(processor_.Refresh().ok());
  EXPECT_TRUE(processor_.Contains(7));
  EXPECT_TRUE(processor_.Contains(8));
}

TEST_F(SuspendedBatchesTest, AreNoMoreThanTheirRecordHasRoomFor) {
  std::vector<uint64_t> full(kMaxRecorded);
  std::iota(full.begin(), full.end(), 1);
  store_.Overwrite("suspended-batches", absl::StrJoin(full, ","));
  ASSERT_TRUE(initiator_.Add(kMaxRecorded + 1).ok());
  EXPECT_FALSE(initiator_.Contains(1));
  EXPECT_TRUE(initiator_.Contains(2));
  EXPECT_TRUE(initiator_.Contains(kMaxRecorded + 1));
}

TEST_F(SuspendedBatchesTest, ReportARecordThatIsNoList) {
  ASSERT_TRUE(*store_.TryWrite("suspended-batches", "7,x", sync::kAbsent));
  EXPECT_TRUE(absl::IsDataLoss(processor_.Refresh()));
  EXPECT_TRUE(absl::IsDataLoss(initiator_.Add(8)));
}

}  // namespace
}  // namespace muster::item
