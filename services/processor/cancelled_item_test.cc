// Items of batches that are cancelled.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/cancelled_batches.h"
#include "tests/fakes/processor/item_worker_fixture.h"

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
