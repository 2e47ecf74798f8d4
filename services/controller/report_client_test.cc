// SPDX-License-Identifier: Apache-2.0
#include "muster/report/report_client.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/report/remote/remote_report_client.h"
#include "muster/report/sqlite/connection.h"
#include "tests/fakes/controller/report_service_fixture.h"

namespace muster::controller {
namespace {

using report::Progress;
using report::ReportClient;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// The contract of a ReportClient, with the report in this process or behind a server.
enum class Where { kHere, kThere };

class ReportClientTest : public ReportServiceTest, public ::testing::WithParamInterface<Where> {
 protected:
  ReportClientTest() {
    if (GetParam() == Where::kThere) {
      report_client_ = std::make_unique<report::remote::RemoteReportClient>(
          [this] { return server_->addresses(); }, rpc::ChannelOptions(), kLong);
    } else {
      report_client_ = std::make_unique<report::LocalReportClient>(
          report_.get(), [this](uint64_t batch) { return NoteCheck(batch); });
    }
  }

  std::unique_ptr<ReportClient> report_client_;
};

INSTANTIATE_TEST_SUITE_P(Desks, ReportClientTest, ::testing::Values(Where::kHere, Where::kThere),
                         [](const auto& test) {
                           return test.param == Where::kHere ? "Here" : "There";
                         });

TEST_P(ReportClientTest, RegistersABatchAndTellsWhereItStands) {
  const absl::StatusOr<Progress> first = report_client_->RegisterBatch(Shop());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->job_revision, "r1");
  EXPECT_EQ(first->items(), 0);
  EXPECT_FALSE(first->first_counted.has_value());
  Count({Item(0, "ann"), Dead(1)});
  const absl::StatusOr<Progress> again = report_client_->RegisterBatch(Shop());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->items_counted, 1);
  EXPECT_EQ(again->items_dead, 1);
  EXPECT_EQ(again->last_counted, clock_.Now());
  EXPECT_EQ(report_client_->GetProgress(kBatch)->transactions, 2);
}

TEST_P(ReportClientTest, KnowsTheHighestBatch) {
  EXPECT_EQ(*report_client_->HighestBatch(), 0u);
  Register();
  report::BatchShape other = Shop();
  other.batch = kBatch + 1'000'000;
  ASSERT_TRUE(report_client_->RegisterBatch(other).ok());
  EXPECT_EQ(*report_client_->HighestBatch(), kBatch + 1'000'000);
}

TEST_P(ReportClientTest, RefusesABatchThatIsKnownOtherwise) {
  Register();
  report::BatchShape other = Shop();
  other.job_revision = "r2";
  EXPECT_TRUE(absl::IsFailedPrecondition(report_client_->RegisterBatch(other).status()));
}

TEST_P(ReportClientTest, RefusesAGroupThatNoTableCanBeMadeOf) {
  report::BatchShape shape = Shop();
  shape.groups[1].measures[0].scale = 19;
  EXPECT_TRUE(absl::IsInvalidArgument(report_client_->RegisterBatch(shape).status()));
}

TEST_P(ReportClientTest, NamesWhatIsNotCounted) {
  Register();
  Count({Item(1, "ann"), Dead(3)});
  EXPECT_THAT(*report_client_->UncountedItems(kBatch, 6, 0, 4096), ElementsAre(0, 2, 4, 5));
  EXPECT_THAT(*report_client_->UncountedItems(kBatch, 6, 1, 2), ElementsAre(2, 4));
  EXPECT_THAT(*report_client_->UncountedItems(kBatch, 6, 6, 2), IsEmpty());
}

TEST_P(ReportClientTest, NamesWhatWasGivenUp) {
  Register();
  Count({Item(1, "ann"), Dead(3), Item(4, "bob"), Dead(5), Dead(8)});
  EXPECT_THAT(*report_client_->DeadLetteredItems(kBatch, 0, 4096), ElementsAre(3, 5, 8));
  EXPECT_THAT(*report_client_->DeadLetteredItems(kBatch, 4, 1), ElementsAre(5));
  EXPECT_THAT(*report_client_->DeadLetteredItems(kBatch, 9, 1), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(report_client_->DeadLetteredItems(kBatch + 1, 0, 1).status()));
}

TEST_P(ReportClientTest, BoundsHowManyItemsAnAnswerHas) {
  Register();
  EXPECT_THAT(*report_client_->UncountedItems(kBatch, 5000, 0, 4096), SizeIs(4096));
  for (const size_t max : {size_t{0}, size_t{4097}, size_t{1} << 40}) {
    EXPECT_TRUE(absl::IsInvalidArgument(report_client_->UncountedItems(kBatch, 6, 0, max).status()))
        << max;
    EXPECT_TRUE(absl::IsInvalidArgument(report_client_->DeadLetteredItems(kBatch, 0, max).status()))
        << max;
  }
}

TEST_P(ReportClientTest, AsksTheControllerToLook) {
  Register();
  EXPECT_EQ(report_client_->CheckCompletion(kBatch), absl::OkStatus());
  EXPECT_THAT(checked(), ElementsAre(kBatch));
}

TEST_P(ReportClientTest, HearsWhatKeptABatchFromItsReceipt) {
  Register();
  SetTrouble(absl::AbortedError("they do not agree"));
  const absl::Status trouble = report_client_->CheckCompletion(kBatch);
  EXPECT_TRUE(absl::IsAborted(trouble)) << trouble;
  EXPECT_THAT(trouble.message(), ::testing::HasSubstr("they do not agree"));
  EXPECT_THAT(checked(), ElementsAre(kBatch)) << "no call is sent twice";
}

TEST_P(ReportClientTest, HandsOutTheReceiptThatWasIssued) {
  Register();
  EXPECT_TRUE(absl::IsNotFound(report_client_->GetReceipt(kBatch).status()));
  Count({Item(0, "ann")});
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "r1";
  facts.handler_version = "v1";
  facts.items = facts.transactions = 1;
  facts.created = clock_.Now();
  const absl::StatusOr<report::Receipt> issued = report_->Complete(facts);
  ASSERT_TRUE(issued.ok()) << issued.status();
  const absl::StatusOr<report::StoredReceipt> receipt = report_client_->GetReceipt(kBatch);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->text, issued->ToText());
  EXPECT_EQ(receipt->checksum, issued->Checksum());
  EXPECT_EQ(report_client_->GetProgress(kBatch)->receipt_revision, 1);
}

TEST_P(ReportClientTest, ClaimsRejectionsForARetryAndTellsWhichBatchHasThem) {
  Register();
  report::CountedItem item = Item(0, "ann");
  item.transactions = 3;
  item.rejected = 2;
  item.rejections = {{7, "no price"}, {9, "no price"}};
  Count({item});
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "r1";
  facts.handler_version = "v1";
  facts.items = 1;
  facts.transactions = 3;
  ASSERT_TRUE(report_->Complete(facts).ok());
  const auto line = report_client_->ClaimRejections(kBatch, {{9}}, 1);
  ASSERT_TRUE(line.ok()) << line.status();
  ASSERT_EQ(line->claims.size(), 1);
  const int64_t retry = line->claims[0].retry;
  EXPECT_EQ(line->claims[0], (report::RetryClaim{retry, 1, 0}));
  EXPECT_FALSE(line->more);
  const auto claimed = report_client_->ClaimedRejections(kBatch, retry, {}, 10);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_EQ(claimed->size(), 1);
  EXPECT_EQ(claimed->front().line, 9);
  EXPECT_THAT(*report_client_->ClaimedRejections(kBatch, retry, claimed->front(), 10), IsEmpty());
  EXPECT_EQ(*report_client_->RecordRetry(kBatch, retry, {{0, 9, 2}}, 0), 1);
  EXPECT_EQ(*report_client_->RecordRetry(kBatch, retry, {}, kBatch + 1), 1);
  EXPECT_THAT(report_client_->GetProgress(kBatch)->retried_in, ElementsAre(kBatch + 1));
  ASSERT_TRUE(report_->RegisterBatch(Shop(kBatch + 1)).ok());
  EXPECT_EQ(report_client_->GetProgress(kBatch + 1)->retry_of, kBatch);
  const auto rest = report_client_->ClaimRejections(kBatch, {}, 10);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->claims.at(0).transactions, 1);
}

TEST_P(ReportClientTest, RetriesWhatWasGivenUp) {
  Register();
  Count({Item(0, "ann"), Dead(1), Dead(2)});
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "r1";
  facts.handler_version = "v1";
  facts.items = 3;
  facts.transactions = Dead(1).transactions * 2 + Item(0, "ann").transactions;
  ASSERT_TRUE(report_->Complete(facts).ok());
  const auto item = report_client_->ClaimRejections(kBatch, {.items = {1}}, 1);
  ASSERT_TRUE(item.ok()) << item.status();
  const int64_t retry = item->claims.at(0).retry;
  const auto claimed =
      report_client_->ClaimedRejections(kBatch, retry, report::kBeforeAllClaimed, 10);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_EQ(claimed->size(), 1);
  EXPECT_EQ(claimed->front().item, 1);
  EXPECT_EQ(claimed->front().line, report::kWholeItem);
  EXPECT_EQ(*report_client_->RecordRetry(kBatch, retry, {{1, 9, 2}, {1, 0, 2}}, kBatch + 1), 1);
  EXPECT_THAT(*report_client_->RetriedItems(kBatch, {0, 1, 2}), ElementsAre(Pair(1, kBatch + 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(report_client_->ReopenDeadLettered(kBatch, {1})));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      report_client_->ClaimRejections(kBatch, {.rejections_only = true}, 10).status()));
  const auto rest = report_client_->ClaimRejections(kBatch, {}, 10);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->claims.at(0).transactions, Dead(2).transactions);
}

TEST_P(ReportClientTest, BoundsHowMuchOneCallRetries) {
  Register();
  const std::vector<int64_t> many(1001, 1);
  const auto is_refused = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status);
  };
  EXPECT_TRUE(is_refused(report_client_->ClaimRejections(kBatch, {many}, 1).status()));
  const std::vector<uint64_t> many_items(1001, 1);
  EXPECT_TRUE(
      is_refused(report_client_->ClaimRejections(kBatch, {.items = many_items}, 1).status()));
  EXPECT_TRUE(is_refused(report_client_->ClaimRejections(kBatch, {{1}, {1}}, 1).status()));
  EXPECT_TRUE(
      is_refused(report_client_->RetriedItems(kBatch, std::vector<uint64_t>(4097, 1)).status()));
  for (const int64_t max : {0, 50'001}) {
    EXPECT_TRUE(is_refused(report_client_->ClaimRejections(kBatch, {}, max).status())) << max;
  }
  EXPECT_TRUE(is_refused(report_client_->ClaimedRejections(kBatch, 1, {}, 4097).status()));
  const std::vector<report::RetriedTransaction> placed(4097);
  EXPECT_TRUE(is_refused(report_client_->RecordRetry(kBatch, 1, placed, 0).status()));
}

TEST_P(ReportClientTest, HasTheReportDecideHowABatchEnds) {
  Register();
  const report::Cancellation cancellation{clock_.Now(), "sent twice"};
  ASSERT_EQ(report_client_->CancelBatch(kBatch, cancellation), absl::OkStatus());
  for (const auto& standing :
       {report_client_->GetProgress(kBatch), report_client_->RegisterBatch(Shop()),
        absl::StatusOr<Progress>(report_client_->ListProgress({kBatch})->at(kBatch))}) {
    ASSERT_TRUE(standing.ok() && standing->cancelled.has_value()) << standing.status();
    EXPECT_EQ(standing->cancelled->when, cancellation.when);
    EXPECT_EQ(standing->cancelled->reason, "sent twice");
  }
  report::BatchFacts facts;
  facts.batch = kBatch + 1;
  facts.job = "shop";
  facts.job_revision = "r1";
  ASSERT_TRUE(report_->RegisterBatch(Shop(kBatch + 1)).ok());
  ASSERT_TRUE(report_->Complete(facts).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(report_client_->CancelBatch(kBatch + 1, cancellation)));
}

TEST_P(ReportClientTest, GivesABatchNumberToOneOwner) {
  report::BatchShape first = Shop(), second = Shop();
  first.owner = "directory a";
  second.owner = "directory b";
  ASSERT_TRUE(report_client_->RegisterBatch(first).ok());
  EXPECT_EQ(report_client_->GetProgress(kBatch)->owner, "directory a");
  EXPECT_TRUE(absl::IsAlreadyExists(report_client_->RegisterBatch(second).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(
      report_client_->CancelBatch(kBatch, {clock_.Now(), "unwanted", second.owner})));
}

TEST_P(ReportClientTest, TalliesWhatIsCountedOfABatchThatIsNotComplete) {
  Register();
  EXPECT_EQ(report_client_->GetTally(kBatch)->rows_sha256, report::EmptyTally(kBatch).rows_sha256);
  report::CountedItem newer = Item(3, "bob");
  newer.handler_version = "v2";
  Count({Item(0, "ann"), newer, Dead(5)});
  const absl::StatusOr<report::Tally> tally = report_client_->GetTally(kBatch);
  ASSERT_TRUE(tally.ok()) << tally.status();
  EXPECT_EQ(tally->progress.aggregated, 2);
  EXPECT_EQ(tally->progress.items_dead, 1);
  EXPECT_THAT(tally->items_by_version, ElementsAre(Pair("v1", 2), Pair("v2", 1)));
}

// The digests equal those in a receipt of the same rows.
TEST_P(ReportClientTest, TalliesWithTheDigestsOfAReceipt) {
  Register();
  report::CountedItem picky = Item(0, "ann");
  picky.transactions = 2;
  picky.rejected = 1;
  picky.rejections = {{3, "no price"}};
  Count({picky, Item(1, "bob")});
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "r1";
  facts.items = 2;
  facts.transactions = 3;
  const absl::StatusOr<report::Receipt> receipt = report_->Complete(facts);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  const absl::StatusOr<report::Tally> tally = report_client_->GetTally(kBatch);
  ASSERT_TRUE(tally.ok()) << tally.status();
  EXPECT_EQ(tally->items_sha256, receipt->items_sha256);
  EXPECT_EQ(tally->rows_sha256, receipt->rows_sha256);
  EXPECT_EQ(tally->rejections_sha256, receipt->rejections_sha256);
  EXPECT_NE(tally->rejections_sha256, report::EmptyTally(kBatch).rejections_sha256);
}

TEST_P(ReportClientTest, TalliesNothingWhereTotalsAndRowsContradictEachOther) {
  Register();
  Count({Item(0, "ann"), Item(1, "bob")});
  auto shell = report::sqlite::Connection::Open(path(), report::sqlite::OpenMode::kWrite);
  ASSERT_TRUE((*shell)->Execute("DELETE FROM muster_item WHERE item = 1").ok());
  EXPECT_TRUE(absl::IsDataLoss(report_client_->GetTally(kBatch).status()));
}

TEST_P(ReportClientTest, GivesDeadLetteredItemsAnotherChance) {
  Register();
  Count({Item(0, "ann"), Dead(1), Dead(2)});
  EXPECT_EQ(report_client_->ReopenDeadLettered(kBatch, {0, 1, 5}), absl::OkStatus());
  EXPECT_THAT(*report_client_->UncountedItems(kBatch, 3, 0, 10), ElementsAre(1));
  EXPECT_TRUE(absl::IsInvalidArgument(
      report_client_->ReopenDeadLettered(kBatch, std::vector<uint64_t>(4097, 2))));
}

TEST_P(ReportClientTest, KnowsNothingOfABatchThatNobodyRegistered) {
  EXPECT_TRUE(absl::IsNotFound(report_client_->GetProgress(kBatch).status()));
  EXPECT_TRUE(absl::IsNotFound(report_client_->UncountedItems(kBatch, 1, 0, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(report_client_->GetReceipt(kBatch).status()));
  EXPECT_TRUE(absl::IsNotFound(report_client_->GetTally(kBatch).status()));
  EXPECT_TRUE(absl::IsNotFound(report_client_->ReopenDeadLettered(kBatch, {1})));
  // A controller that looked would find its report broken and give up.
  EXPECT_TRUE(absl::IsNotFound(report_client_->CheckCompletion(kBatch)));
  EXPECT_THAT(checked(), IsEmpty());
}

TEST_P(ReportClientTest, IsUnavailableWhileSomebodyElseWritesToTheReport) {
  Register();
  Count({Dead(0)});
  auto shell = report::sqlite::Connection::Open(path(), report::sqlite::OpenMode::kWrite);
  ASSERT_TRUE((*shell)->Execute("BEGIN IMMEDIATE").ok());
  EXPECT_TRUE(absl::IsUnavailable(report_client_->ReopenDeadLettered(kBatch, {0})));
  EXPECT_TRUE(report_client_->GetProgress(kBatch).ok());
  ASSERT_TRUE((*shell)->Execute("ROLLBACK").ok());
  EXPECT_EQ(report_client_->ReopenDeadLettered(kBatch, {0}), absl::OkStatus());
}

}  // namespace
}  // namespace muster::controller
