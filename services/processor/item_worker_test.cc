#include "services/processor/item_worker.h"

#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/item_result.pb.h"
#include "tests/fakes/processor/item_worker_fixture.h"

namespace muster::processor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ItemWorkerTest, TurnsAnItemIntoARowPerKey) {
  const v1::ItemResult result = ResultOf(Work(Item("ann,1.50\nbob,2\nann,0.25\n", 3)));
  EXPECT_EQ(result.batch(), 3u);
  EXPECT_EQ(result.index(), 4u);
  EXPECT_EQ(result.transactions(), 3u);
  EXPECT_EQ(result.attempt(), 2u);
  EXPECT_EQ(result.handler_version(), "7");
  EXPECT_EQ(result.worker(), "worker-1");
  ASSERT_EQ(result.aggregated().groups_size(), 1);
  const v1::GroupPartial& group = result.aggregated().groups(0);
  EXPECT_EQ(group.group(), "by_customer");
  ASSERT_EQ(group.rows_size(), 2);
  EXPECT_EQ(group.rows(0).keys(0), "ann");
  EXPECT_EQ(group.rows(0).measures(0), "1.75");
  EXPECT_EQ(group.rows(1).measures(0), "2.00");
  EXPECT_EQ(setup_.transactions_processed, 3u);
}

TEST_F(ItemWorkerTest, ClaimChecksAResultThatIsTooLargeForAMessage) {
  std::string ragged;
  for (int i = 0; i < 30'000; ++i) ragged += "ragged\n";
  const queue::Message item = Item(ragged, 30'000);
  EXPECT_EQ(Work(item).kind, Settlement::Kind::kRetry) << "no place for it";
  blobs_.SwitchOn();
  const v1::ItemResult result = ResultOf(Work(item));
  ASSERT_TRUE(result.has_claimed_aggregated());
  v1::Aggregated aggregated;
  ASSERT_TRUE(aggregated.ParseFromString(*blobs_.Get(result.claimed_aggregated().blob())));
  EXPECT_EQ(aggregated.rejections_size(), 30'000);
  const v1::ItemResult again = ResultOf(Work(item, Sum, 3));
  EXPECT_NE(again.claimed_aggregated().blob(), result.claimed_aggregated().blob())
      << "counting the one would take the other's blob";
}

TEST_F(ItemWorkerTest, AResultNeverExpires) {
  EXPECT_EQ(Work(Item("a,1\n", 1)).outputs.front().ttl, queue::kNeverExpires);
}

TEST_F(ItemWorkerTest, RejectsWhatParserAndHandlerRefuseInOrderOfLine) {
  const v1::ItemResult result = ResultOf(Work(Item("ann,x\nragged\nbob,1\n", 3)));
  ASSERT_EQ(result.aggregated().rejections_size(), 2);
  EXPECT_EQ(result.aggregated().rejections(0).line(), 10);
  EXPECT_EQ(result.aggregated().rejections(0).reason(), "amount: not a number");
  EXPECT_EQ(result.aggregated().rejections(1).line(), 11);
  EXPECT_THAT(result.aggregated().rejections(1).reason(), HasSubstr("fields"));
}

TEST_F(ItemWorkerTest, AnOversizedRecordIsOneRejection) {
  const v1::ItemResult result = ResultOf(Work(Item("", 1, true)));
  ASSERT_EQ(result.aggregated().rejections_size(), 1);
  EXPECT_EQ(result.aggregated().rejections(0).line(), 10);
}

TEST_F(ItemWorkerTest, TheSameItemGivesTheSameResult) {
  const auto aggregated = [this] {
    return ResultOf(Work(Item("b,1\na,2\nc,3\nragged\n", 4))).aggregated().SerializeAsString();
  };
  EXPECT_EQ(aggregated(), aggregated());
}

TEST_F(ItemWorkerTest, AnExceptionIsARetryWithItsText) {
  const Settlement settlement = Work(Item("a,1\n", 1), [](const auto&, auto&) -> Outcome {
    throw std::runtime_error("no such table");
  });
  EXPECT_EQ(settlement.kind, Settlement::Kind::kRetry);
  EXPECT_THAT(settlement.why, HasSubstr("no such table"));
}

TEST_F(ItemWorkerTest, ForgettingAVerdictIsNoSuccess) {
  const Settlement settlement =
      Work(Item("a,1\nb,2\n", 2), [](const handler::WorkItem& item, Results& results) {
        results.Reject(item.transactions()[0], "no");
        return Outcome::Ok();
      });
  EXPECT_EQ(settlement.kind, Settlement::Kind::kRetry);
  EXPECT_THAT(settlement.outputs, IsEmpty());
}

TEST_F(ItemWorkerTest, ForgettingTheOutcomeIsNoSuccess) {
  EXPECT_EQ(Work(Item("a,1\n", 1), [](const auto&, auto&) { return Outcome(); }).kind,
            Settlement::Kind::kRetry);
}

TEST_F(ItemWorkerTest, PassesOutcomesOn) {
  const auto kind_of = [this](Outcome outcome) {
    return Work(Item("a,1\n", 1), [outcome](const auto&, auto&) { return outcome; });
  };
  EXPECT_EQ(kind_of(Outcome::Retry(absl::Seconds(5), "busy")).delay, absl::Seconds(5));
  EXPECT_EQ(kind_of(Outcome::Retry(absl::Seconds(5), "busy")).kind, Settlement::Kind::kRetry);
  EXPECT_EQ(kind_of(Outcome::Defer(absl::Seconds(6), "later")).kind, Settlement::Kind::kDefer);
  EXPECT_EQ(kind_of(Outcome::Dead("never")).kind, Settlement::Kind::kDead);
  EXPECT_EQ(kind_of(Outcome::Dead("never")).why, "never");
  EXPECT_EQ(kind_of(Outcome::Release()).kind, Settlement::Kind::kRelease);
}

TEST_F(ItemWorkerTest, ADamagedItemIsDead) {
  queue::Message message;
  message.body = "garbage";
  EXPECT_EQ(Work(message).kind, Settlement::Kind::kDead);
}

TEST_F(ItemWorkerTest, AnItemWhoseSliceHoldsAnotherNumberOfRecordsIsDead) {
  const Settlement settlement = Work(Item("a,1\nb,2\n", 3));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDead);
  EXPECT_THAT(settlement.why, HasSubstr("3 transactions"));
}

TEST_F(ItemWorkerTest, AnItemThatNamesAnotherNumberOfFieldsThanItsJobIsDead) {
  positions_of_items_ = {0};
  const Settlement settlement = Work(Item("a,1\nb,2\n", 2));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDead);
  EXPECT_THAT(settlement.why, HasSubstr("1 fields"));
}

}  // namespace
}  // namespace muster::processor
