// Items that fail again and again, or that their holders died of.
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/item_result.pb.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/processor/item_worker_fixture.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Sum, but for an item with bob in it, which it fails as a whole.
Outcome FailOnBob(const handler::WorkItem& item, Results& results) {
  for (const handler::Transaction& t : item.transactions()) {
    if (t.fields()[0] == "bob") return Outcome::Retry(absl::ZeroDuration(), "bob again");
  }
  for (const handler::Transaction& t : item.transactions()) {
    results.Count(t,
                  {{handler::Group{0}, {t.fields()[0]}, {*base::Decimal::Parse(t.fields()[1])}}});
  }
  return Outcome::Ok();
}

TEST_F(ItemWorkerTest, TakesAnItemApartOnItsLastAttemptSoThatOnlyThePoisonIsRejected) {
  const queue::Message item = Item("ann,1.50\nragged\nbob,2\nann,0.25\n", 4);
  EXPECT_EQ(Work(item, FailOnBob).kind, Settlement::Kind::kRetry);
  const v1::ItemResult result = ResultOf(WorkLast(item, FailOnBob));
  EXPECT_EQ(result.transactions(), 4u);
  ASSERT_EQ(result.aggregated().rejections_size(), 2);
  EXPECT_EQ(result.aggregated().rejections(0).line(), 11);
  EXPECT_EQ(result.aggregated().rejections(1).line(), 12);
  EXPECT_EQ(result.aggregated().rejections(1).reason(), "poison: bob again");
  ASSERT_EQ(result.aggregated().groups_size(), 1);
  ASSERT_EQ(result.aggregated().groups(0).rows_size(), 1);
  EXPECT_EQ(result.aggregated().groups(0).rows(0).measures(0), "1.75");
}

TEST_F(ItemWorkerTest, NamesEachTransactionOfAnItemThatIsTakenApart) {
  std::vector<std::string> ids;
  WorkLast(Item("ann,1\nbob,2\n", 2), [&](const handler::WorkItem& item, Results& results) {
    ids.push_back(item.id());
    return Sum(item, results);
  });
  EXPECT_THAT(ids, ElementsAre("3/4:10", "3/4:11"));
}

TEST_F(ItemWorkerTest, GivesTheItemUpWhenMoreThanSomeOfItsTransactionsFail) {
  const Settlement settlement = WorkLast(Item("bob,1\nann,1\nbob,2\n", 3), FailOnBob);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kRetry) << "an outage must not become rejections";
  EXPECT_EQ(settlement.why, "bob again");
}

TEST_F(ItemWorkerTest, TakesAnItemNoFurtherApartOnceItIsToStop) {
  std::stop_source stop;
  int calls = 0;
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>([&](const auto& item, auto& results) {
    ++calls;
    stop.request_stop();
    return Sum(item, results);
  }));
  Attempt attempt = AttemptOf(3);
  attempt.last = true;
  attempt.stop_token = stop.get_token();
  const Settlement settlement = worker.Work(Item("ann,1\nbob,2\nann,3\n", 3), attempt);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kRelease);
  EXPECT_EQ(calls, 1);
}

TEST_F(ItemWorkerTest, DefersAnItemThatIsTakenApartWhenItsHandlerSaysSo) {
  const Settlement settlement = WorkLast(Item("ann,1\nbob,2\n", 2), [](const auto&, auto&) {
    return Outcome::Defer(absl::Seconds(9), "not now");
  });
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_EQ(settlement.delay, absl::Seconds(9));
}

TEST_F(ItemWorkerTest, HasASuspectWorkedOnByAHandlerOfItsOwnProcess) {
  int made = 0;
  setup_.isolated =
      [&](const handler::JobSchema&) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
    ++made;
    return std::make_unique<LambdaHandler>(
        [](const auto&, auto&) { return Outcome::Dead("killed by it"); });
  };
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  Attempt attempt = AttemptOf(2);
  const queue::Message item = Item("ann,1\n", 1);
  EXPECT_EQ(worker.Work(item, attempt).kind, Settlement::Kind::kOk);
  EXPECT_EQ(made, 0);
  attempt.suspect = true;
  const Settlement settlement = worker.Work(item, attempt);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDead);
  EXPECT_EQ(settlement.why, "killed by it");
  EXPECT_EQ(made, 1);
}

TEST_F(ItemWorkerTest, RetriesASuspectForWhichNoProcessCanBeMade) {
  setup_.isolated =
      [](const handler::JobSchema&) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
    return absl::UnavailableError("no process left");
  };
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  Attempt attempt = AttemptOf(2);
  attempt.suspect = true;
  const Settlement settlement = worker.Work(Item("ann,1\n", 1), attempt);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kRetry);
  EXPECT_THAT(settlement.why, HasSubstr("no process left"));
}

TEST_F(ItemWorkerTest, TellsTheControllerWhatWasGivenUp) {
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  const auto outputs = worker.OnGivenUp(Item("a,1\nb,2\n", 2), {"boom", 5, "worker-1", {}});
  ASSERT_THAT(outputs, SizeIs(1));
  v1::ItemResult result;
  ASSERT_TRUE(result.ParseFromString(outputs.front().body));
  EXPECT_EQ(result.dead_lettered().cause(), "boom");
  EXPECT_EQ(result.transactions(), 2u);
  EXPECT_EQ(result.attempt(), 5u);
}

TEST_F(ItemWorkerTest, NobodyIsToldOfAMessageThatIsNoItem) {
  base::LogCapture log;
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  queue::Message message;
  message.body = "garbage";
  EXPECT_THAT(worker.OnGivenUp(message, {"boom", 5, "", {}}), IsEmpty());
}

}  // namespace
}  // namespace muster::processor
