// SPDX-License-Identifier: Apache-2.0

// Items that fail again and again, and items that killed their holders.
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/processor/item_worker.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/processor/item_worker_fixture.h"

namespace muster::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sums like Sum, but fails an item with a transaction of bob as a whole.
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

// As an answer with "NaN" of a program. It cost five starts of the program, and its neighbours an
// attempt each.
TEST_F(ItemWorkerTest, RejectsATransactionWhoseValueDoesNotFitAtOnceAndBlamesNoOther) {
  const auto unfit_with_bob = [](const handler::WorkItem& item, Results& results) {
    const Outcome outcome = FailOnBob(item, results);
    return outcome.kind == Outcome::Kind::kOk ? outcome : Outcome::Unfit("amount: 'NaN'");
  };
  const v1::ItemResult result =
      ResultOf(Work(Item("ann,1.50\nbob,2\nann,0.25\n", 3), unfit_with_bob));
  ASSERT_EQ(result.aggregated().rejections_size(), 1);
  EXPECT_EQ(result.aggregated().rejections(0).line(), 11);
  EXPECT_EQ(result.aggregated().rejections(0).reason(), "amount: 'NaN'");
  ASSERT_EQ(result.aggregated().groups(0).rows_size(), 1);
  EXPECT_EQ(result.aggregated().groups(0).rows(0).measures(0), "1.75");
  const v1::ItemResult all = ResultOf(Work(Item("bob,1\nbob,2\n", 2), unfit_with_bob));
  EXPECT_EQ(all.aggregated().rejections_size(), 2) << "however many there are";
}

// The item runs one by one for bob's value, on its first attempt: what happens to ann in that run
// is a failure like any other, which the attempts that are left may mend.
TEST_F(ItemWorkerTest, RetriesAnItemWhoseHandlerFailsWhileATransactionIsFoundThatDoesNotFit) {
  bool is_out = true;
  const auto unfit_with_bob = [&](const handler::WorkItem& item, Results& results) {
    if (FailOnBob(item, results).kind != Outcome::Kind::kOk) return Outcome::Unfit("a 'NaN'");
    return is_out ? Outcome::Retry(absl::ZeroDuration(), "killed") : Outcome::Ok();
  };
  const queue::Message item = Item("ann,1.50\nbob,2\nann,0.25\n", 3);
  const Settlement settlement = Work(item, unfit_with_bob);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kRetry) << "an outage must not become rejections";
  EXPECT_EQ(settlement.why, "killed");
  is_out = false;
  const v1::ItemResult result = ResultOf(Work(item, unfit_with_bob));
  ASSERT_EQ(result.aggregated().rejections_size(), 1);
  EXPECT_EQ(result.aggregated().rejections(0).line(), 11);
  EXPECT_EQ(result.aggregated().rejections(0).reason(), "a 'NaN'");
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

// Ten in a hundred lines may be poison, but ten that hang would take ten deadlines.
TEST_F(ItemWorkerTest, GivesTheItemUpWhenTransactionsHangForThreeDeadlines) {
  job_.handler = job::CommandHandlerSpec();
  base::FakeClock clock;
  setup_.clock = &clock;
  std::string slice;
  for (int i = 0; i < 100; ++i) slice += "ann,1\n";
  int calls = 0;
  const Settlement settlement = WorkLast(Item(slice, 100), [&](const auto&, auto&) {
    ++calls;
    clock.Advance(absl::Seconds(60));
    return Outcome::Retry(absl::ZeroDuration(), "gave no answer within 1m");
  });
  EXPECT_EQ(settlement.kind, Settlement::Kind::kRetry);
  EXPECT_EQ(settlement.why, "gave no answer within 1m");
  EXPECT_EQ(calls, 3);
}

TEST_F(ItemWorkerTest, RejectsAFewTransactionsThatHangAmongSlowOnes) {
  job_.handler = job::CommandHandlerSpec();
  base::FakeClock clock;
  setup_.clock = &clock;
  std::string slice = "bob,2\n";
  for (int i = 0; i < 98; ++i) slice += "ann,1\n";
  slice += "bob,2\n";
  const Settlement settlement =
      WorkLast(Item(slice, 100), [&](const handler::WorkItem& item, Results& results) {
        const Outcome outcome = FailOnBob(item, results);
        clock.Advance(outcome.kind == Outcome::Kind::kOk ? absl::Seconds(30) : absl::Seconds(60));
        return outcome;
      });
  EXPECT_EQ(ResultOf(settlement).aggregated().rejections_size(), 2);
}

TEST_F(ItemWorkerTest, TellsALinkedHandlerItsDeadline) {
  job::LinkedHandlerSpec linked;
  linked.deadline = absl::Seconds(5);
  job_.handler = linked;
  base::FakeClock clock;
  setup_.clock = &clock;
  absl::Time deadline;
  const Body note = [&](const handler::WorkItem& item, Results& results) {
    deadline = item.deadline();
    return Sum(item, results);
  };
  Work(Item("ann,1\n", 1), note);
  EXPECT_EQ(deadline, clock.Now() + absl::Seconds(5));
  job_.handler = job::LinkedHandlerSpec();
  Work(Item("ann,1\n", 1), note);
  EXPECT_EQ(deadline, absl::InfiniteFuture());
}

// Linked handlers may hang, too: the warning is all that a user gets of it.
TEST_F(ItemWorkerTest, WarnsOfAHandlerThatDoesNotComeBack) {
  base::FakeClock clock;
  SlowItems slow_items(&clock);
  setup_.clock = &clock;
  setup_.slow_items = &slow_items;
  setup_.health = std::make_shared<handler::HealthTroubles>();
  Work(Item("ann,1\n", 1), [&](const handler::WorkItem& item, Results& results) {
    clock.AwaitSleepers(1);
    clock.Advance(kWarnUnlessPromised);
    while (setup_.health->why().empty()) base::LetOthersRun();
    EXPECT_THAT(setup_.health->why(), HasSubstr("item 3/4 has been with its handler"));
    return Sum(item, results);
  });
  EXPECT_EQ(setup_.health->why(), "");
}

// Such as a bug that a handler turns into a retry: no program dies of it, and no item is slow.
TEST_F(ItemWorkerTest, TellsOfAHandlerThatFailsOnEachItem) {
  base::LogCapture log;
  setup_.health = std::make_shared<handler::HealthTroubles>();
  for (int64_t i = 0; i < kFailuresUntilTold; ++i) {
    Work(Item("ann,1\n", 1),
         [](const auto&, auto&) { return Outcome::Retry({}, "no such column"); });
  }
  EXPECT_EQ(setup_.health->why(),
            "its last 10 attempts gave no result; the latest, at item 3/4: no such column");
  Work(Item("ann,1\n", 1));
  EXPECT_EQ(setup_.health->why(), "");
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

TEST_F(ItemWorkerTest, ChargesNoSuspectForWhichNoProcessCanBeMade) {
  setup_.isolated =
      [](const handler::JobSchema&) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
    return absl::UnavailableError("no process left");
  };
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  Attempt attempt = AttemptOf(2);
  attempt.suspect = true;
  const Settlement settlement = worker.Work(Item("ann,1\n", 1), attempt);
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("no process left"));
}

}  // namespace
}  // namespace muster::processor
