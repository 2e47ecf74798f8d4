// SPDX-License-Identifier: Apache-2.0

// Items of other revisions and handler versions, and items that only newer processors can read.

#include "services/processor/item_worker.h"

#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/suspended_batches.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/work_item.pb.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/processor/item_worker_fixture.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/fakes/telemetry/shown.h"

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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ItemWorkerTest, LeavesItemsOfAnotherRevisionToOthersUnchargedAndSaysSo) {
  base::LogCapture log;
  revision_of_items_ = "r2";
  const Settlement settlement = Work(Item("a,1\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("revision r2"));
  EXPECT_THAT(settlement.wanted, HasSubstr("revision r2"));
  EXPECT_EQ(Work(Item("b,1\n", 1)).wanted, settlement.wanted) << "it is of the same kind";
  revision_of_items_ = "r3";
  EXPECT_NE(Work(Item("c,1\n", 1)).wanted, settlement.wanted);
}

// Changes the item as a newer initiator may write it: with more fields, and with its slice packed
// in a new way.
queue::Message Newer(queue::Message message, bool repacked) {
  v1::WorkItem item;
  EXPECT_TRUE(item.ParseFromString(message.body));
  if (repacked) item.clear_payload();
  message.body = item.SerializeAsString() + "\xa2\x06\x03new";
  return message;
}

TEST_F(ItemWorkerTest, WorksOnAnItemToWhichANewerMusterHasAddedFields) {
  EXPECT_EQ(AmountOf(Work(Newer(Item("a,1\n", 1), /*repacked=*/false)), "a"), "1.00");
}

TEST_F(ItemWorkerTest, LeavesItemsToNewerProcessorsUnchargedThatOnlyTheyCanRead) {
  base::LogCapture log;
  const Settlement settlement = Work(Newer(Item("a,1\n", 1), /*repacked=*/true));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("newer muster"));
  EXPECT_THAT(settlement.wanted, HasSubstr("newer muster"));
  EXPECT_EQ(Work(Newer(Item("b,1\n", 1), /*repacked=*/true)).wanted, settlement.wanted);
  EXPECT_THAT(log.lines(), ElementsAre(HasSubstr("no fitting worker")));
}

TEST_F(ItemWorkerTest, WorksOnItemsOfTheRevisionThatTheirBatchIsBoundTo) {
  setup_.revisions = &revisions_;
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  revision_of_items_ = "r0";
  EXPECT_EQ(AmountOf(worker.Work(Item("5,ann\n", 1), AttemptOf(1)), "ann"), "5.00");
  EXPECT_EQ(AmountOf(worker.Work(Item("6,bob\n", 1), AttemptOf(1)), "bob"), "6.00");
  EXPECT_EQ(revisions_.asked_, 1);
  revision_of_items_ = "r1";
  EXPECT_EQ(AmountOf(worker.Work(Item("ann,7\n", 1), AttemptOf(1)), "ann"), "7.00");
}

TEST_F(ItemWorkerTest, LeavesItemsToOthersWhoseRevisionNobodyKnows) {
  setup_.revisions = &revisions_;
  revision_of_items_ = "r9";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("never heard of it"));
}

TEST_F(ItemWorkerTest, LeavesItemsToOthersWhoseRevisionHasAnotherHandlerHere) {
  setup_.revisions = &revisions_;
  revisions_.version_ = "8";
  revision_of_items_ = "r0";
  const Settlement settlement = Work(Item("5,ann\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("handler version 8"));
}

TEST_F(ItemWorkerTest, LeavesItemsToOthersWhoseBatchIsBoundToAnotherVersion) {
  version_of_items_ = "6";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.wanted, HasSubstr("handler version 6"));
}

// An attempt costs a broker more than all the rest of giving an item back.
TEST_F(ItemWorkerTest, BeginsOnNoItemsThatDoNotFitOnceItHasSeenOne) {
  base::LogCapture log;
  ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
  const queue::QueueId queue{"acme", "in"};
  const auto work = [&](const std::vector<std::string>& versions) {
    std::vector<queue::Message> messages;
    for (const std::string& version : versions) {
      version_of_items_ = version;
      messages.push_back(Item("ann,5\n", 1));
    }
    std::vector<listener::Delivery> deliveries;
    for (size_t i = 0; i < messages.size(); ++i) {
      deliveries.push_back({&messages[i], &queue, i, 1, false, {}, {}});
    }
    NotedClaim context;
    worker.OnMessages(absl::MakeSpan(deliveries), context);
    EXPECT_EQ(context.settled_.size(), versions.size());
    return context;
  };
  EXPECT_THAT(work({"6"}).begun_, ElementsAre(0)) << "it has not looked for any yet";
  NotedClaim context = work({"6", "7", "6", "7"});
  EXPECT_THAT(context.begun_, ElementsAre(1, 3));
  EXPECT_EQ(context.settled_[0].kind, Settlement::Kind::kDefer);
  EXPECT_THAT(context.settled_[0].wanted, HasSubstr("handler version 6"));
  EXPECT_EQ(AmountOf(context.settled_[1], "ann"), "5.00");
  EXPECT_THAT(work({"7"}).begun_, ElementsAre(0));
  EXPECT_THAT(work({"6"}).begun_, ElementsAre(0)) << "none of those before was one";
}

TEST_F(ItemWorkerTest, WorksOnItemsOfABatchThatIsBoundToNoVersionAndTellsItsOwn) {
  version_of_items_ = "";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(AmountOf(settlement, "ann"), "5.00");
  EXPECT_EQ(ResultOf(settlement).handler_version(), "7");
  setup_.handler_version = "8";
  EXPECT_EQ(ResultOf(Work(Item("ann,5\n", 1))).handler_version(), "8");
}

TEST_F(ItemWorkerTest, WorksOnItemsOfAnotherRevisionThatAreBoundToNoVersion) {
  setup_.revisions = &revisions_;
  revisions_.version_ = "8";
  version_of_items_ = "";
  revision_of_items_ = "r0";
  const Settlement settlement = Work(Item("5,ann\n", 1));
  EXPECT_EQ(AmountOf(settlement, "ann"), "5.00");
  EXPECT_EQ(ResultOf(settlement).handler_version(), "8");
}

TEST_F(ItemWorkerTest, LeavesItemsOfAnotherRevisionToOthersThoughAnyVersionMayHaveThem) {
  version_of_items_ = "";
  revision_of_items_ = "r2";
  const Settlement settlement = Work(Item("ann,5\n", 1));
  EXPECT_EQ(settlement.kind, Settlement::Kind::kDefer);
  EXPECT_THAT(settlement.why, HasSubstr("handler version any; this worker has"));
}

TEST_F(ItemWorkerTest, TellsWhichVersionGaveUpAnItemThatIsBoundToNone) {
  const auto version_told = [&] {
    ItemWorker worker(&setup_, std::make_unique<LambdaHandler>(Sum));
    const auto outputs = worker.OnGivenUp(Item("5,ann\n", 1), {"boom", 5, "worker-1", {}});
    v1::ItemResult result;
    EXPECT_TRUE(result.ParseFromString(outputs.at(0).body));
    return result.handler_version();
  };
  setup_.handler_version = "9";
  EXPECT_EQ(version_told(), "7") << "it is bound to this one";
  version_of_items_ = "";
  EXPECT_EQ(version_told(), "9");
  revision_of_items_ = "r0";
  EXPECT_EQ(version_told(), "9") << "who gives it up cannot work on it";
  setup_.revisions = &revisions_;
  EXPECT_EQ(version_told(), "7") << "of its revision";
}

}  // namespace

// Items that fail again and again, and items that killed their holders.

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

// Items of cancelled batches.

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

TEST(LoggedBatchesTest, ForgetsTheBatchThatCameLeastRecently) {
  LoggedBatches logged;
  EXPECT_TRUE(logged.Insert(1));
  EXPECT_TRUE(logged.Insert(2));
  EXPECT_FALSE(logged.Insert(1));
  for (uint64_t batch = 3; batch <= kMaxLogged + 1; ++batch) EXPECT_TRUE(logged.Insert(batch));
  EXPECT_FALSE(logged.Insert(1));
  EXPECT_TRUE(logged.Insert(2));
}

}  // namespace

}  // namespace muster::processor
