// SPDX-License-Identifier: Apache-2.0

// The receipt proves a batch, and says so only when it is true.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "muster/report/audit.h"
#include "tests/conformance/report/report_conformance.h"

namespace muster::report::conformance {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

void LinkReceiptTests() {}

TEST_P(ReportConformanceTest, IssuesAReceiptThatAddsUp) {
  CountedItem newer = Item(1, "bob", "2", 2);
  newer.handler_version = "v2";
  Commit({Item(0, "ann", "1", 1), newer});
  Advance(absl::Seconds(3));
  Commit({Dead(2, "no"), Item(0, "ann", "1", 1)});
  const Receipt receipt = Complete(Facts(3));
  EXPECT_EQ(receipt.revision, 1);
  EXPECT_EQ(receipt.transactions, 30u);
  EXPECT_EQ(receipt.aggregated, 18);
  EXPECT_EQ(receipt.rejected, 2);
  EXPECT_EQ(receipt.dead_lettered, 10);
  EXPECT_EQ(receipt.items_dead, 1);
  EXPECT_THAT(receipt.items_by_version, ElementsAre(Pair("v1", 2), Pair("v2", 1)));
  EXPECT_EQ(receipt.attempts, 7);
  EXPECT_EQ(receipt.duplicates_dropped, 1);
  EXPECT_EQ(receipt.last_counted - receipt.first_counted, absl::Seconds(3));
  EXPECT_EQ(receipt.ack_survives, AckSurvives::kPower);
  EXPECT_EQ(GetProgress().receipt_revision, 1);
}

TEST_P(ReportConformanceTest, ReceiptIsItsTextAndVerifies) {
  Commit({Item(0, "ann", "1", 1)});
  const Receipt receipt = Complete(Facts(1));
  Restart();
  const StoredReceipt stored = *Read()->GetReceipt(kBatch);
  EXPECT_EQ(stored.text, receipt.ToText());
  EXPECT_EQ(stored.checksum, receipt.Checksum());
  const absl::StatusOr<Verification> verified = VerifyReceipt(*Read(), kBatch);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_THAT(verified->differences, IsEmpty());
  EXPECT_EQ(verified->receipt.ToText(), receipt.ToText());
}

TEST_P(ReportConformanceTest, ReceiptOfABatchThatIsBoundToNoVersionTellsWhichHaveWorkedOnIt) {
  CountedItem newer = Item(1, "bob", "2", 2);
  newer.handler_version = "v2";
  Commit({Item(0, "ann", "1", 1), newer});
  BatchFacts facts = Facts(2);
  facts.handler_version = "";
  const Receipt receipt = Complete(facts);
  EXPECT_EQ(receipt.handler_version, "");
  EXPECT_THAT(receipt.items_by_version, ElementsAre(Pair("v1", 1), Pair("v2", 1)));
  Restart();
  const absl::StatusOr<Verification> verified = VerifyReceipt(*Read(), kBatch);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_THAT(verified->differences, IsEmpty());
}

TEST_P(ReportConformanceTest, IssuesNoReceiptWhileItemsAreMissing) {
  Commit({Item(0, "ann", "1", 1), Item(2, "ann", "1", 1)});
  const auto receipt = store()->Complete(Facts(3));
  EXPECT_EQ(receipt.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(receipt.status().message()), HasSubstr("2 of 3"));
}

TEST_P(ReportConformanceTest, IssuesNoReceiptForItemsBeyondTheBatch) {
  Commit({Item(0, "ann", "1", 1), Item(2, "ann", "1", 1)});
  EXPECT_EQ(store()->Complete(Facts(2)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(ReportConformanceTest, IssuesNoReceiptWhenTransactionsAreMissing) {
  Commit({Item(0, "ann", "1", 1)});
  BatchFacts facts = Facts(1);
  facts.transactions = 11;
  EXPECT_EQ(store()->Complete(facts).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(ReportConformanceTest, IssuesAReceiptForAnEmptyBatch) {
  const Receipt receipt = Complete(Facts(0));
  EXPECT_EQ(receipt.transactions, 0u);
  EXPECT_TRUE(VerifyReceipt(*Read(), kBatch)->ok());
}

TEST_P(ReportConformanceTest, GivesTheSameReceiptAgain) {
  Commit({Item(0, "ann", "1", 1)});
  const Receipt first = Complete(Facts(1));
  Commit({Item(0, "ann", "1", 1)});  // a late duplicate proves nothing new
  EXPECT_EQ(Complete(Facts(1)).ToText(), first.ToText());
  EXPECT_TRUE(VerifyReceipt(*Read(), kBatch)->ok());
}

TEST_P(ReportConformanceTest, IssuesANewRevisionAfterARedrive) {
  Commit({Item(0, "ann", "1", 1), Dead(1, "no")});
  const Receipt first = Complete(Facts(2));
  Commit({Item(1, "ann", "1", 1)});
  EXPECT_FALSE(VerifyReceipt(*Read(), kBatch)->ok()) << "the rows have moved on";
  const Receipt second = Complete(Facts(2));
  EXPECT_EQ(second.revision, 2);
  EXPECT_EQ(second.dead_lettered, 0);
  EXPECT_NE(second.items_sha256, first.items_sha256);
  EXPECT_TRUE(VerifyReceipt(*Read(), kBatch)->ok());
}

TEST_P(ReportConformanceTest, ARedriveTakesBackThatABatchIsCompleteUntilItIsCompleteAgain) {
  Commit({Item(0, "ann", "1", 1), Dead(1, "no")});
  EXPECT_FALSE(GetProgress().is_complete());
  Complete(Facts(2));
  EXPECT_TRUE(GetProgress().is_complete());
  ASSERT_TRUE(store()->ReopenDeadLettered(kBatch, {0}).ok()) << "which is counted";
  EXPECT_TRUE(GetProgress().is_complete()) << "nothing has changed";
  ASSERT_TRUE(store()->ReopenDeadLettered(kBatch, {1}).ok());
  Restart();
  EXPECT_TRUE(GetProgress().reopened);
  Commit({Item(1, "ann", "1", 1)});
  EXPECT_TRUE(GetProgress().reopened) << "its receipt proves other rows";
  Complete(Facts(2));
  Restart();
  EXPECT_TRUE(GetProgress().is_complete());
  EXPECT_EQ(GetProgress().receipt_revision, 2);
}

TEST_P(ReportConformanceTest, ALateResultThatReplacesADeadLetterTakesBackThatABatchIsComplete) {
  Commit({Item(0, "ann", "1", 1), Dead(1, "no")});
  Complete(Facts(2));
  Commit({Item(0, "ann", "1", 1)});  // a duplicate
  EXPECT_TRUE(GetProgress().is_complete());
  Commit({Item(1, "ann", "1", 1)});
  EXPECT_FALSE(GetProgress().is_complete());
  Complete(Facts(2));
  EXPECT_TRUE(GetProgress().is_complete());
}

TEST_P(ReportConformanceTest, ACompleteBatchCountsInPlaceOfThoseThatItReplaces) {
  Commit({Item(0, "ann", "1", 1)});
  Complete(Facts(1));
  BatchShape second = Shop(8);
  second.replaces = {kBatch};
  BatchShape third = Shop(9);
  third.replaces = {8, kBatch};
  for (const BatchShape& shape : {second, third}) ASSERT_TRUE(store()->RegisterBatch(shape).ok());
  EXPECT_EQ(GetProgress(9).replaces, (std::vector<uint64_t>{8, kBatch}));
  EXPECT_EQ(GetProgress().replaced_by, 0u) << "none of them is complete";
  for (const uint64_t later : {9, 8}) {
    CountedItem item = Item(0, "ann", "1", 1);
    item.batch = later;
    Commit({item});
    BatchFacts facts = Facts(1);
    facts.batch = later;
    Complete(facts);
    EXPECT_EQ(GetProgress().replaced_by, 9u);
  }
  EXPECT_EQ(GetProgress(9).replaced_by, 0u);
  ASSERT_TRUE(store()->ForgetBatch(9, 1000).value());
  EXPECT_EQ(GetProgress().replaced_by, 8u);
}

TEST_P(ReportConformanceTest, RefusesAReceiptForAnUnknownBatch) {
  BatchFacts facts = Facts(0);
  facts.batch = 99;
  EXPECT_EQ(store()->Complete(facts).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(ReportConformanceTest, IssuesNoReceiptForACancelledBatch) {
  Commit({Item(0, "ann", "1", 1)});
  const absl::Time when = Now();
  ASSERT_TRUE(store()->CancelBatch(kBatch, {when, "unwanted"}).ok());
  Advance(absl::Seconds(1));
  ASSERT_TRUE(store()->CancelBatch(kBatch, {Now(), "again"}).ok());
  Restart();
  Commit({Item(1, "ann", "1", 1)});  // was on its way
  const auto receipt = store()->Complete(Facts(2));
  EXPECT_EQ(receipt.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(receipt.status().message()), HasSubstr("is cancelled"));
  const Progress standing = GetProgress();
  ASSERT_TRUE(standing.cancelled.has_value());
  EXPECT_EQ(standing.cancelled->when, when);
  EXPECT_EQ(standing.cancelled->reason, "unwanted");
  EXPECT_EQ(standing.items(), 2);
  EXPECT_EQ(standing.receipt_revision, 0);
}

TEST_P(ReportConformanceTest, CancelsNoBatchThatHasAReceiptNotEvenAfterARedrive) {
  Commit({Item(0, "ann", "1", 1), Dead(1, "no")});
  Complete(Facts(2));
  const absl::Status refused = store()->CancelBatch(kBatch, {Now(), "unwanted"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is complete"));
  ASSERT_TRUE(store()->ReopenDeadLettered(kBatch, {1}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store()->CancelBatch(kBatch, {Now(), "unwanted"})));
  EXPECT_FALSE(GetProgress().cancelled.has_value());
  Commit({Item(1, "ann", "1", 1)});
  EXPECT_EQ(Complete(Facts(2)).revision, 2);
}

TEST_P(ReportConformanceTest, KeepsTheCancellationOfABatchThatIsNotRegisteredUntilItIsForgotten) {
  constexpr uint64_t kLate = kBatch + 1;
  ASSERT_TRUE(store()->CancelBatch(kLate, {Now(), "unwanted"}).ok());
  const auto late = store()->RegisterBatch(Shop(kLate));
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_TRUE(late->cancelled.has_value());
  BatchFacts facts = Facts(0);
  facts.batch = kLate;
  EXPECT_TRUE(absl::IsFailedPrecondition(store()->Complete(facts).status()));
  ASSERT_TRUE(store()->ForgetBatch(kLate, 100).value());
  EXPECT_FALSE(store()->RegisterBatch(Shop(kLate))->cancelled.has_value());
  ASSERT_TRUE(store()->CancelBatch(kLate + 1, {Now(), "unwanted"}).ok());
  ASSERT_TRUE(store()->ForgetBatch(kLate + 1, 100).value());
  EXPECT_FALSE(store()->RegisterBatch(Shop(kLate + 1))->cancelled.has_value());
}

TEST_P(ReportConformanceTest, GivesABatchNumberToOneOwner) {
  BatchShape first = Shop(), second = Shop();
  first.owner = "directory a";
  second.owner = "directory b";
  ASSERT_TRUE(store()->RegisterBatch(first).ok()) << "registered without an owner so far";
  Restart();
  EXPECT_EQ(store()->RegisterBatch(first)->owner, "directory a");
  EXPECT_TRUE(absl::IsAlreadyExists(store()->RegisterBatch(second).status()));
  EXPECT_TRUE(
      absl::IsAlreadyExists(store()->CancelBatch(kBatch, {Now(), "unwanted", second.owner})));
  EXPECT_EQ(store()->RegisterBatch(Shop())->owner, "directory a") << "an older initiator's";
  EXPECT_EQ(GetProgress().owner, "directory a");
  EXPECT_FALSE(GetProgress().cancelled.has_value());
  ASSERT_TRUE(store()->ForgetBatch(kBatch, 100).value());
  EXPECT_TRUE(store()->RegisterBatch(second).ok()) << "nothing of it is left";
}

// The tables of jobs that were deleted filled the report, and the memory of all that had it open.
TEST_P(ReportConformanceTest, ForgetsAJobOnceItHasNoBatchOfIt) {
  BatchShape other = Shop(kBatch + 1);
  other.job = "market";
  ASSERT_TRUE(store()->RegisterBatch(other).ok());
  CommitAll({Item(0, "ann", "1", 1)});
  EXPECT_THAT(Read()->JobsWithoutBatches().value(), IsEmpty());
  ASSERT_TRUE(store()->ForgetJob("shop").ok());
  EXPECT_THAT(Rows("by_customer"), ElementsAre("ann: 1.00 1")) << "it has a batch";
  ASSERT_TRUE(store()->ForgetBatch(kBatch, 100).value());
  EXPECT_THAT(Read()->JobsWithoutBatches().value(), ElementsAre("shop"));
  ASSERT_TRUE(store()->ForgetJob("shop").ok());
  EXPECT_THAT(Read()->JobsWithoutBatches().value(), IsEmpty());
  ASSERT_TRUE(store()->ForgetJob("shop").ok()) << "there is nothing of it any more";
  // The job is there again, with other columns in the group of that name.
  BatchShape changed = Shop();
  changed.groups.front().keys = {"street", "house"};
  ASSERT_TRUE(store()->RegisterBatch(changed).ok());
  CountedItem item = Item(0, "ann", "1", 1);
  item.groups.front().rows.front().keys = {"high street", "7"};
  CommitAll({item});
  EXPECT_THAT(Rows("by_customer"), ElementsAre("high street|7: 1.00 1"));
}

TEST_P(ReportConformanceTest, ForgetsABatchStepByStepAndNoOther) {
  constexpr uint64_t kOther = kBatch + 1;
  ASSERT_TRUE(store()->RegisterBatch(Shop(kOther)).ok());
  CountedItem other = Item(0, "eve", "5", 5);
  other.batch = kOther;
  std::vector<CountedItem> items = {other};
  for (uint64_t i = 0; i < 10; ++i) items.push_back(Item(i, absl::StrCat("c", i), "1", 1));
  CommitAll(items);
  Complete(Facts(10));
  int steps = 1;
  for (;; ++steps) {
    const absl::StatusOr<bool> done = store()->ForgetBatch(kBatch, 4);
    ASSERT_TRUE(done.ok()) << done.status();
    if (*done) break;
    EXPECT_TRUE(Read()->GetProgress(kBatch).ok()) << "what is left must be found again";
  }
  EXPECT_GT(steps, 5);
  EXPECT_TRUE(store()->ForgetBatch(kBatch, 4).value());
  EXPECT_TRUE(absl::IsNotFound(Read()->GetProgress(kBatch).status()));
  EXPECT_TRUE(absl::IsNotFound(Read()->GetReceipt(kBatch).status()));
  EXPECT_THAT(Rejections(), IsEmpty());
  EXPECT_THAT(Items(), IsEmpty());
  EXPECT_THAT(Rows("by_customer", kOther), ElementsAre("eve: 5.00 5"));
  // The number's rows are gone: registered anew, the batch begins with nothing.
  ASSERT_TRUE(store()->RegisterBatch(Shop()).ok());
  EXPECT_THAT(Rows("by_customer"), IsEmpty());
  EXPECT_EQ(GetProgress().items(), 0);
}

}  // namespace muster::report::conformance
