// SPDX-License-Identifier: Apache-2.0

// Each item counts exactly once, however often its result is delivered.
#include <algorithm>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/conformance/report/report_conformance.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::report::conformance {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void LinkCountingTests() {}

TEST_P(ReportConformanceTest, AddsTheRowsOfItemsExactly) {
  EXPECT_THAT(Commit({Item(0, "ann", "0.10", 1), Item(1, "ann", "0.20", 2)}),
              ElementsAre(Verdict::kCounted, Verdict::kCounted));
  EXPECT_THAT(Commit({Item(2, "bob", "-7.5", 4), Item(3, "ann", "1000000000000.01", 8)}),
              ElementsAre(Verdict::kCounted, Verdict::kCounted));
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1000000000000.31 11", "bob: -7.50 4"));
  EXPECT_THAT(Rows("by_day"), ElementsAre("monday|a: 15"));
}

TEST_P(ReportConformanceTest, KeepsRunningTotals) {
  const absl::Time first = Now();
  Commit({Item(0, "ann", "1", 1)});
  Advance(absl::Seconds(5));
  const CommitSummary summary = CommitAll({Item(1, "ann", "1", 1), Dead(2, "handler died")});
  const Progress progress = GetProgress();
  EXPECT_EQ(progress.items_counted, 2);
  EXPECT_EQ(progress.items_dead, 1);
  EXPECT_EQ(progress.transactions, 30);
  EXPECT_EQ(progress.aggregated, 18);
  EXPECT_EQ(progress.rejected, 2);
  EXPECT_EQ(progress.dead_lettered, 10);
  EXPECT_EQ(progress.attempts, 7);
  EXPECT_EQ(progress.first_counted, first);
  EXPECT_EQ(progress.last_counted, first + absl::Seconds(5));
  ASSERT_EQ(summary.progress.size(), 1u);
  EXPECT_EQ(summary.progress[0].transactions, progress.transactions);
}

TEST_P(ReportConformanceTest, DropsAResultThatIsDeliveredAgain) {
  Commit({Item(0, "ann", "1", 1)});
  CountedItem again = Item(0, "ann", "1", 1);
  again.attempts = 2;
  again.worker = "worker-2";
  EXPECT_THAT(Commit({again, again}), ElementsAre(Verdict::kDuplicate, Verdict::kDuplicate));
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1"));
  EXPECT_EQ(GetProgress().duplicates, 2);
  EXPECT_EQ(GetProgress().attempts, 1);
}

TEST_P(ReportConformanceTest, DropsASecondDeliveryWithinOneCommit) {
  EXPECT_THAT(Commit({Item(0, "ann", "1", 1), Item(0, "ann", "1", 1)}),
              ElementsAre(Verdict::kCounted, Verdict::kDuplicate));
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1"));
}

TEST_P(ReportConformanceTest, KeepsOutAnotherResultOfACountedItem) {
  Commit({Item(0, "ann", "1", 1)});
  const CommitSummary summary = CommitAll({Item(0, "ann", "2", 2)});
  EXPECT_EQ(summary.verdicts[0].verdict, Verdict::kConflict);
  EXPECT_THAT(summary.verdicts[0].why, HasSubstr("7/0"));
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1"));
  EXPECT_EQ(GetProgress().conflicts, 1);
}

TEST_P(ReportConformanceTest, KeepsOutAResultOfAnotherSlice) {
  Commit({Dead(0, "handler died")});
  CountedItem other = Item(0, "ann", "1", 1);
  other.content = base::Fingerprint("another slice");
  EXPECT_THAT(Commit({other}), ElementsAre(Verdict::kConflict));
  EXPECT_EQ(GetProgress().items_dead, 1);
}

TEST_P(ReportConformanceTest, ADeadItemThatGetsAnotherChanceIsUncountedAgain) {
  Commit({Item(0, "ann", "1", 1), Dead(1, "no"), Dead(2, "no")});
  ASSERT_TRUE(store()->ReopenDeadLettered(kBatch, {0, 1, 7}).ok());
  const Progress progress = *Read()->GetProgress(kBatch);
  EXPECT_EQ(progress.items_counted, 1) << "what was aggregated stays";
  EXPECT_EQ(progress.items_dead, 1);
  EXPECT_THAT(*Read()->UncountedItems(kBatch, 3, 0, 10), ElementsAre(1));
  EXPECT_THAT(Commit({Item(1, "ann", "1", 1)}), ElementsAre(Verdict::kCounted));
  EXPECT_EQ(store()->ReopenDeadLettered(99, {0}).code(), absl::StatusCode::kNotFound);
}

TEST_P(ReportConformanceTest, CountsADeadItemOnceARedriveSucceeds) {
  EXPECT_THAT(Commit({Dead(0, "handler died")}), ElementsAre(Verdict::kDeadLettered));
  EXPECT_THAT(Commit({Item(0, "ann", "1", 1)}), ElementsAre(Verdict::kCounted));
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1"));
  const Progress progress = GetProgress();
  EXPECT_EQ(progress.items_counted, 1);
  EXPECT_EQ(progress.items_dead, 0);
  EXPECT_EQ(progress.transactions, 10);
  EXPECT_EQ(progress.dead_lettered, 0);
  EXPECT_EQ(progress.attempts, 6) << "those before the redrive were made, too";
}

TEST_P(ReportConformanceTest, NeverTakesACountedItemBack) {
  Commit({Item(0, "ann", "1", 1)});
  EXPECT_THAT(Commit({Dead(0, "lost its lease")}), ElementsAre(Verdict::kDuplicate));
  EXPECT_EQ(GetProgress().items_counted, 1);
  EXPECT_EQ(Items()[0].outcome, ItemOutcome::kAggregated);
}

TEST_P(ReportConformanceTest, KeepsWhyATransactionWasRejected) {
  Commit({Item(1, "ann", "1", 1), Item(0, "bob", "1", 1)});
  EXPECT_THAT(Rejections(), ElementsAre("1 no price", "11 no price"));
  EXPECT_THAT(Rejections(1, 1), ElementsAre("11 no price"));
  EXPECT_THAT(Rejections(2), IsEmpty());
}

TEST_P(ReportConformanceTest, GoesOnBehindARejectionWithoutLeavingOneOut) {
  CountedItem two = Item(3, "ann", "1", 2);
  two.aggregated = 8;
  two.rejected = 2;
  two.rejections = {{31, "no quantity"}, {34, "no price"}};
  Commit({Item(1, "ann", "1", 1), two, Item(0, "bob", "1", 1)});
  const auto after = [this](uint64_t item, int64_t line, int64_t max = 10) {
    std::vector<std::string> lines;
    EXPECT_TRUE(Read()
                    ->ForEachRejectionAfter(kBatch, {item, line}, max,
                                            [&lines](const RejectionRow& row) {
                                              lines.push_back(
                                                  absl::StrCat(row.item, ":", row.line));
                                            })
                    .ok());
    return lines;
  };
  EXPECT_THAT(after(0, 0), ElementsAre("0:1", "1:11", "3:31", "3:34"));
  EXPECT_THAT(after(0, 0, 2), ElementsAre("0:1", "1:11"));
  EXPECT_THAT(after(1, 11), ElementsAre("3:31", "3:34"));
  EXPECT_THAT(after(3, 31), ElementsAre("3:34"));
  EXPECT_THAT(after(3, 34), IsEmpty());
}

TEST_P(ReportConformanceTest, ListsWhatWasGivenUpWithItsCause) {
  Commit({Item(1, "ann", "1", 1), Dead(2, "it said \"no\""), Dead(5, "killed by signal 6")});
  const auto dead = [this](uint64_t from, size_t max) {
    const auto rows = Read()->DeadLetters(kBatch, from, max);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<std::string> texts;
    for (const ItemRow& row : *rows) texts.push_back(absl::StrCat(row.index, " ", row.cause));
    return texts;
  };
  EXPECT_THAT(dead(0, 10), ElementsAre("2 it said \"no\"", "5 killed by signal 6"));
  EXPECT_THAT(dead(0, 1), ElementsAre("2 it said \"no\""));
  EXPECT_THAT(dead(3, 10), ElementsAre("5 killed by signal 6"));
  EXPECT_TRUE(absl::IsNotFound(Read()->DeadLetters(kBatch + 1000, 0, 1).status()));
}

TEST_P(ReportConformanceTest, KeepsEverythingOfAnItem) {
  const CountedItem sent = Item(3, "ann", "1", 1);
  Commit({sent, Dead(4, "it said \"no\"")});
  const std::vector<ItemRow> items = Items();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].index, 3u);
  EXPECT_EQ(items[0].content, sent.content);
  EXPECT_EQ(items[0].result, sent.result);
  EXPECT_EQ(items[0].handler_version, "v1");
  EXPECT_EQ(items[0].worker, "worker-1");
  EXPECT_EQ(items[0].counted, Now());
  EXPECT_EQ(items[1].cause, "it said \"no\"");
}

TEST_P(ReportConformanceTest, SaysWhichItemsHaveNotCounted) {
  Commit({Item(1, "a", "1", 1), Item(2, "a", "1", 1), Dead(5, "no")});
  EXPECT_THAT(Uncounted(7), ElementsAre(0, 3, 4, 6));
  EXPECT_THAT(Uncounted(7, 4), ElementsAre(4, 6));
  EXPECT_THAT(Uncounted(7, 0, 2), ElementsAre(0, 3));
  EXPECT_THAT(Uncounted(3, 1), IsEmpty());
}

TEST_P(ReportConformanceTest, RefusesAnOwnerOfAnEarlierEpoch) {
  Commit({Item(0, "ann", "1", 1)}, /*epoch=*/3);
  const auto late = store()->Commit({"shop-out-0", 2, {Item(1, "ann", "1", 1)}});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kFailedPrecondition) << late.status();
  EXPECT_EQ(GetProgress().items(), 1);
  EXPECT_TRUE(store()->Commit({"shop-out-1", 1, {Item(1, "ann", "1", 1)}}).ok())
      << "each partition has its own owner";
}

TEST_P(ReportConformanceTest, CountsNothingOfACommitWithAnUnknownBatch) {
  CountedItem stray = Item(0, "ann", "1", 1);
  stray.batch = 99;
  const auto summary = store()->Commit({"shop-out-0", 1, {Item(0, "ann", "1", 1), stray}});
  EXPECT_EQ(summary.status().code(), absl::StatusCode::kNotFound) << summary.status();
  EXPECT_EQ(GetProgress().items(), 0);
  EXPECT_FALSE(Read()->GetProgress(99).ok());
}

TEST_P(ReportConformanceTest, KeepsBatchesApart) {
  ASSERT_TRUE(store()->RegisterBatch(Shop(8)).ok());
  CountedItem other = Item(0, "ann", "5", 5);
  other.batch = 8;
  Commit({Item(0, "ann", "1", 1), other});
  EXPECT_THAT(Rows("by_customer", 7), ElementsAre("ann: 1.00 1"));
  EXPECT_THAT(Rows("by_customer", 8), ElementsAre("ann: 5.00 5"));
  EXPECT_EQ(Read()->HighestBatch().value(), kBatch + 1);
  EXPECT_THAT(Read()->Jobs().value(), ElementsAre("shop"));
  EXPECT_THAT(Read()->BatchesOf("shop").value(), ElementsAre(kBatch, kBatch + 1));
  EXPECT_THAT(Read()->BatchesOf("wholesale").value(), ElementsAre());
}

TEST_P(ReportConformanceTest, TellsWhereABatchStandsThatIsRegisteredAgain) {
  const auto first = store()->RegisterBatch(Shop());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->batch, 7u);
  EXPECT_EQ(first->items(), 0);
  Commit({Item(0, "ann", "1", 1), Item(1, "bob", "2", 1)});
  const auto again = store()->RegisterBatch(Shop());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->items(), 2);
  EXPECT_EQ(again->aggregated, GetProgress().aggregated);
}

TEST_P(ReportConformanceTest, RegistersABatchForOneJobRevisionOnly) {
  EXPECT_TRUE(store()->RegisterBatch(Shop()).ok());
  BatchShape other = Shop();
  other.job_revision = "revision-2";
  EXPECT_EQ(store()->RegisterBatch(other).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(ReportConformanceTest, LetsARevisionChangeItsGroups) {
  Commit({Item(0, "ann", "1", 1)});
  BatchShape changed = Shop(8);
  changed.job_revision = "revision-2";
  changed.groups[0].keys = {"customer", "country"};
  ASSERT_TRUE(store()->RegisterBatch(changed).ok());
  CountedItem item = Item(0, "ann", "5", 5);
  item.batch = 8;
  item.groups[0].rows[0].keys = {"ann", "EIRE"};
  EXPECT_THAT(Commit({item}), ElementsAre(Verdict::kCounted));
  EXPECT_THAT(Rows("by_customer", 7), ElementsAre("ann: 1.00 1"));
  EXPECT_THAT(Rows("by_customer", 8), ElementsAre("ann|EIRE: 5.00 5"));
}

TEST_P(ReportConformanceTest, TakesAnyTextAsNameAndKey) {
  const std::string nasty = "x\"; DROP TABLE \"muster_batch\"; --'";
  BatchShape shape{8,
                   nasty,
                   nasty,
                   {{nasty, {nasty, "batch"}, {{"select", false, 0}, {"muster_batch", true, 0}}},
                    {"muster_item", {"é"}, {{"n", true, 0}}},
                    {"sqlite_x", {"k"}, {{"n", true, 0}}}}};
  ASSERT_TRUE(store()->RegisterBatch(shape).ok());
  CountedItem item = Item(0, "ann", "1", 1);
  item.batch = 8;
  const base::Decimal one = base::Decimal::FromInt(1);
  item.groups = {{nasty, {{{nasty, ""}, {one, one}}}}, {"muster_item", {{{"ß"}, {one}}}}};
  EXPECT_THAT(Commit({item}), ElementsAre(Verdict::kCounted));
  EXPECT_THAT(Rows(nasty, 8), ElementsAre(absl::StrCat(nasty, "|: 1 1")));
  EXPECT_THAT(Rows("muster_item", 8), ElementsAre("ß: 1"));
  EXPECT_THAT(Rows("sqlite_x", 8), IsEmpty());
}

TEST_P(ReportConformanceTest, OrdersRowsByTheBytesOfTheirKeys) {
  Commit({Item(0, "b", "1", 1), Item(1, "B", "1", 1), Item(2, "", "1", 1), Item(3, "ä", "1", 1),
          Item(4, "aa", "1", 1)});
  EXPECT_THAT(Rows("by_customer"),
              ElementsAre(": 1.00 1", "B: 1.00 1", "aa: 1.00 1", "b: 1.00 1", "ä: 1.00 1"));
}

TEST_P(ReportConformanceTest, AnswersNotFoundForWhatIsNotThere) {
  const auto visit = [](const GroupRow&) {};
  EXPECT_EQ(Read()->ForEachRow(7, "by_moon", visit).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read()->ForEachRow(99, "by_day", visit).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read()->GetProgress(99).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read()->GetReceipt(7).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(ReportConformanceTest, ReaderSeesOneMoment) {
  Commit({Item(0, "ann", "1", 1)});
  const std::unique_ptr<ReportReader> reader = Read();
  Commit({Item(1, "ann", "1", 1)});
  EXPECT_EQ(reader->GetProgress(kBatch)->items_counted, 1);
  EXPECT_EQ(GetProgress().items_counted, 2);
}

TEST_P(ReportConformanceTest, KeepsAllOverARestart) {
  Commit({Item(0, "ann", "1", 1)}, /*epoch=*/2);
  Restart();
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1"));
  EXPECT_THAT(Commit({Item(0, "ann", "1", 1), Item(1, "ann", "1", 1)}, /*epoch=*/2),
              ElementsAre(Verdict::kDuplicate, Verdict::kCounted));
  EXPECT_FALSE(store()->Commit({"shop-out-0", 1, {}}).ok()) << "the epoch is kept";
}

// Deliveries of 40 items, each up to three times, in any order and cut into any commits.
TEST_P(ReportConformanceTest, TotalsDoNotDependOnOrderOrRepetition) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::vector<CountedItem> deliveries;
  int64_t units = 0;
  for (int i = 0; i < 40; ++i) {
    units += i;
    const int times = 1 + static_cast<int>(random() % 3);
    deliveries.insert(deliveries.end(), times,
                      Item(i, absl::StrCat("c", i % 3), absl::StrCat(i, ".25"), i));
  }
  std::shuffle(deliveries.begin(), deliveries.end(), random);
  for (size_t at = 0; at < deliveries.size();) {
    const size_t size = std::min<size_t>(1 + random() % 9, deliveries.size() - at);
    Commit({deliveries.begin() + at, deliveries.begin() + at + size});
    at += size;
  }
  EXPECT_THAT(Rows("by_day"), ElementsAre(absl::StrCat("monday|a: ", units)));
  EXPECT_EQ(GetProgress().items_counted, 40);
  EXPECT_EQ(GetProgress().duplicates, static_cast<int64_t>(deliveries.size()) - 40);
}

TEST_P(ReportConformanceTest, ReadsWhileAnotherThreadCommits) {
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) Commit({Item(i, "ann", "1", 1)});
  });
  for (int i = 0; i < 20; ++i) {
    const std::unique_ptr<ReportReader> reader = Read();
    ASSERT_NE(reader, nullptr);
    const int64_t items = reader->GetProgress(kBatch)->items_counted;
    int64_t rows = 0;
    EXPECT_TRUE(reader->ForEachItem(kBatch, [&](const ItemRow&) { ++rows; }).ok());
    EXPECT_EQ(rows, items);
  }
  writer.join();
  EXPECT_EQ(GetProgress().items_counted, 20);
}

}  // namespace muster::report::conformance
