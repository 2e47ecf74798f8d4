// SPDX-License-Identifier: Apache-2.0
#include "services/processor/item_worker.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/item_result.pb.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/processor/item_worker_fixture.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::processor {

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
  EXPECT_EQ(Work(item).kind, Settlement::Kind::kDefer) << "no place for it";
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
  EXPECT_THAT(result.aggregated().rejections(1).reason(), HasSubstr("1 field,"));
}

// Its records stand on lines of their own.
TEST_F(ItemWorkerTest, NamesTheLinesOfAnItemInOrder) {
  item::BatchIdentity identity{3, "sum", "r1", "7", std::nullopt, {0, 1}, 2};
  item::WorkItemEncoder encoder(identity, 1 << 20, &blobs_);
  const std::string slice = "ann,x\nann,1\nann,2,3\n";
  ledger::ItemBoundary boundary;
  boundary.length = slice.size();
  boundary.first_line = 12;
  boundary.transactions = 3;
  boundary.content = base::Fingerprint(slice);
  queue::Message message;
  message.body = *encoder.EncodeOrdered(4, boundary, slice, {"ann", {12, 40, 7000}});
  const v1::ItemResult result = ResultOf(Work(message));
  ASSERT_EQ(result.aggregated().rejections_size(), 2);
  EXPECT_EQ(result.aggregated().rejections(0).line(), 12);
  EXPECT_EQ(result.aggregated().rejections(1).line(), 7000);
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

TEST_F(ItemWorkerTest, MeasuresTheCallsOfItsHandlerByTheirOutcome) {
  telemetry::Registry registry;
  base::FakeClock clock;
  setup_.clock = &clock;
  setup_.metrics = ItemMetrics(&registry, "sum");
  const auto shown = [&](const std::string& what, const std::string& outcome) {
    return telemetry::Shown(registry, absl::StrCat("muster_handler_call_duration_seconds_", what,
                                                   "{queue=\"sum-in\",outcome=\"", outcome, "\"}"));
  };
  const auto call = [&](absl::Duration time, const Outcome& outcome) {
    Work(Item("a,1\n", 1), [&, outcome](const handler::WorkItem& item, Results& results) {
      clock.Advance(time);
      return outcome.kind == Outcome::Kind::kOk ? Sum(item, results) : outcome;
    });
  };
  call(absl::Seconds(2), Outcome::Ok());
  call(absl::Seconds(3), Outcome::Ok());
  EXPECT_EQ(shown("count", "ok"), 2);
  EXPECT_EQ(shown("sum", "ok"), 5);
  EXPECT_EQ(shown("count", "retry"), std::nullopt) << "none yet";
  call(absl::Seconds(40), Outcome::Retry({}, "busy"));
  call(absl::Seconds(1), Outcome());
  call(absl::Seconds(1), Outcome::Defer({}, "later"));
  call(absl::Seconds(1), Outcome::Dead("never"));
  call(absl::Seconds(1), Outcome::Release());
  EXPECT_EQ(shown("count", "retry"), 2);
  EXPECT_EQ(shown("sum", "retry"), 41);
  for (const char* outcome : {"defer", "dead", "release"}) {
    EXPECT_EQ(shown("count", outcome), 1) << outcome;
  }
}

TEST_F(ItemWorkerTest, TimesAttemptsByTheConventionsOfOpenTelemetry) {
  telemetry::Registry registry;
  base::FakeClock clock;
  setup_.clock = &clock;
  setup_.metrics = ItemMetrics(&registry, "sum");
  const auto attempt = [&](const Outcome& outcome) {
    Work(Item("a,1\n", 1), [&, outcome](const handler::WorkItem& item, Results& results) {
      clock.Advance(absl::Seconds(2));
      return outcome.kind == Outcome::Kind::kOk ? Sum(item, results) : outcome;
    });
  };
  attempt(Outcome::Ok());
  attempt(Outcome::Defer({}, "later"));  // no error
  attempt(Outcome::Retry({}, "busy"));
  attempt(Outcome::Dead("never"));
  const auto seconds = [&](const std::string& error) {
    return telemetry::Shown(
        registry, absl::StrCat("messaging_process_duration_seconds_sum{messaging_destination_name="
                               "\"sum-in\",messaging_operation_name=\"process\",messaging_system="
                               "\"muster\",error_type=\"",
                               error, "\"}"));
  };
  EXPECT_EQ(seconds(""), 4);
  EXPECT_EQ(seconds("retry"), 2);
  EXPECT_EQ(seconds("dead"), 2);
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
