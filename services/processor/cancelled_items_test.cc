// SPDX-License-Identifier: Apache-2.0

// Items of cancelled and suspended batches, and of batches that are over.
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/suspended_batches.h"
#include "muster/ledger/batch_ledger.h"
#include "services/processor/item_worker.h"
#include "tests/fakes/processor/item_worker_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::processor {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ItemWorkerTest, LeavesTheItemsOfACancelledBatchUnrun) {
  item::CancelledBatches cancelled(nullptr);
  setup_.cancelled = &cancelled;
  const queue::Message item = Item("a,1\n", 1);
  EXPECT_EQ(ResultOf(Work(item)).transactions(), 1);
  cancelled.Note(3);
  const Settlement settled = Work(item, [](const handler::WorkItem&, Results&) {
    ADD_FAILURE() << "it was run";
    return Outcome::Ok();
  });
  EXPECT_EQ(settled.kind, Settlement::Kind::kOk);
  EXPECT_THAT(settled.outputs, ::testing::IsEmpty());
}

// What has ended loses its blobs, and a message may come once more after that.
class LateCopyTest : public ItemWorkerTest {
 protected:
  LateCopyTest() {
    blobs_.SwitchOn();
    std::mt19937 random(1);  // noise that does not compress, the same every time
    std::string slice(700'000, '\0');
    for (char& c : slice) c = static_cast<char>('-' + random() % 80);
    copy_ = Item(slice + "\n", 1);
    EXPECT_TRUE(blobs_.Delete(item::BlobName(3, 4)).ok());
    setup_.is_over = [this](uint64_t batch) {
      EXPECT_EQ(batch, 3u);
      return is_over_;
    };
  }

  queue::Message copy_;
  absl::StatusOr<bool> is_over_ = false;
};

TEST_F(LateCopyTest, IsDroppedOnceItsBatchIsOver) {
  is_over_ = true;
  const Settlement settled = Work(copy_);
  EXPECT_EQ(settled.kind, Settlement::Kind::kOk);
  EXPECT_THAT(settled.outputs, IsEmpty());
}

TEST_F(LateCopyTest, IsDroppedOnceItsBatchIsCancelled) {
  item::CancelledBatches cancelled(nullptr);
  setup_.cancelled = &cancelled;
  cancelled.Note(3);
  const Settlement settled = Work(copy_);
  EXPECT_EQ(settled.kind, Settlement::Kind::kOk);
  EXPECT_THAT(settled.outputs, IsEmpty());
}

TEST_F(LateCopyTest, IsGivenUpWhileItsBatchNeedsIt) {
  EXPECT_EQ(Work(copy_).kind, Settlement::Kind::kDead);
  setup_.is_over = nullptr;
  EXPECT_EQ(Work(copy_).kind, Settlement::Kind::kDead) << "nobody tells";
}

TEST_F(LateCopyTest, WaitsWhileNobodyKnowsAndIsGivenUpWhenItsLedgerIsGone) {
  is_over_ = absl::UnavailableError("no initiator answers");
  EXPECT_EQ(Work(copy_).kind, Settlement::Kind::kDefer);
  is_over_ = ledger::UnknownToAll(3, 2);
  EXPECT_EQ(Work(copy_).kind, Settlement::Kind::kDead);
}

TEST_F(ItemWorkerTest, DropsAnItemOfASuspendedBatchThatItDoesNotFit) {
  sync::testing::MemorySyncStore store;
  item::SuspendedBatches suspended(&store);
  setup_.suspended = &suspended;
  version_of_items_ = "6";
  const queue::Message item = Item("a,1\n", 1);
  EXPECT_EQ(Work(item).kind, Settlement::Kind::kDefer);
  ASSERT_TRUE(suspended.Add(3).ok());
  const Settlement settled = Work(item);
  EXPECT_EQ(settled.kind, Settlement::Kind::kOk);
  EXPECT_THAT(settled.outputs, IsEmpty());
}

TEST_F(ItemWorkerTest, WorksOnAFittingItemOfASuspendedBatch) {
  sync::testing::MemorySyncStore store;
  item::SuspendedBatches suspended(&store);
  setup_.suspended = &suspended;
  ASSERT_TRUE(suspended.Add(3).ok());
  EXPECT_EQ(ResultOf(Work(Item("a,1\n", 1))).transactions(), 1);
}

TEST_F(ItemWorkerTest, StopsAnItemWhoseBatchIsCancelledMeanwhileAndIsDoneWithIt) {
  item::CancelledBatches cancelled(nullptr);
  setup_.cancelled = &cancelled;
  const Settlement settled = Work(Item("a,1\n", 1), [&](const handler::WorkItem& item, Results&) {
    EXPECT_FALSE(item.stop_token().stop_requested());
    cancelled.Note(3);
    cancelled.StopRunning(3);
    EXPECT_TRUE(item.stop_token().stop_requested());
    return Outcome::Release();
  });
  EXPECT_EQ(settled.kind, Settlement::Kind::kOk);
  EXPECT_THAT(settled.outputs, IsEmpty());
}

TEST_F(ItemWorkerTest, CountsAnItemThatWasDoneAlthoughItsBatchIsCancelled) {
  item::CancelledBatches cancelled(nullptr);
  setup_.cancelled = &cancelled;
  const Settlement settled =
      Work(Item("a,1\n", 1), [&](const handler::WorkItem& item, Results& results) {
        cancelled.Note(3);
        return Sum(item, results);
      });
  EXPECT_THAT(settled.outputs, SizeIs(1));
}

}  // namespace
}  // namespace muster::processor
