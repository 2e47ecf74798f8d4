// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/remover.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/work_item_codec.h"
#include "services/initiator/retention/remover_fixture.h"

namespace muster::initiator::retention {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A redrive of a dead letter reads its content, after the batch's content has gone, too.
TEST_F(BatchRemoverTest, CopiesTheContentOfDeadLettersBeforeItGoes) {
  Create(1);
  CountWithDeadLetter(1);
  Complete(1);
  std::vector<std::string> kept;
  absl::Status answer = absl::UnavailableError("the disk is full");
  BatchRemover remover({ledger_.get(), &report_client_, blobs_.get(), nullptr, &clock_, nullptr,
                        [&](const ledger::Batch& batch, uint64_t index) {
                          kept.push_back(absl::StrCat(batch.content, " ", index));
                          return answer;
                        }});
  clock_.Advance(kRetention.content);
  EXPECT_TRUE(absl::IsUnavailable(remover.RemoveDue(10).status()));
  EXPECT_EQ(ledger_->Get(1)->content, "the content") << "it stays until there is a copy";
  answer = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(*remover.RemoveDue(10), 1u);
  EXPECT_THAT(kept, ElementsAre("the content 0", "the content 0")) << "of the dead letter alone";
  EXPECT_EQ(ledger_->Get(1)->content, "");
  ASSERT_TRUE(blobs_->Put(item::BlobName(1, 0), "the copy").ok());
  clock_.Advance(kRetention.items - kRetention.content);
  EXPECT_EQ(*remover.RemoveDue(10), 1u);
  EXPECT_TRUE(absl::IsNotFound(blobs_->Get(item::BlobName(1, 0)).status())) << "it goes with them";
}

// With a short retention of the whole batch, as a steady flow of small batches has it.
TEST_F(BatchRemoverTest, RemovesABatchInOneStepWhenAllOfItIsDue) {
  const ledger::Retention whole = {
      .content = absl::Hours(1), .items = absl::Hours(1), .batch = absl::Hours(1)};
  for (uint64_t number = 1; number <= 3; ++number) {
    Create(number, whole);
    Complete(number);
  }
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(*remover_.RemoveDue(10), 3u);
  for (uint64_t number = 1; number <= 3; ++number) EXPECT_EQ(Left(number), "");
  EXPECT_EQ(Files(), files_without_blobs_);
  EXPECT_EQ(*remover_.RemoveDue(10), 0u);
}

TEST_F(BatchRemoverTest, RemovesContentThenItemsThenTheBatch) {
  Create(1);
  clock_.Advance(absl::Hours(1000));
  Sweep();
  EXPECT_EQ(Left(1), "content items blob report ledger") << "it is open";
  Complete(1);
  clock_.Advance(kRetention.content - absl::Seconds(1));
  Sweep();
  EXPECT_EQ(Left(1), "content items blob report ledger");
  clock_.Advance(absl::Seconds(1));
  Sweep();
  EXPECT_EQ(Left(1), "items blob report ledger") << "a dead-lettered item keeps its blob";
  clock_.Advance(kRetention.items - kRetention.content);
  Sweep();
  EXPECT_EQ(Left(1), "report ledger") << "the receipt outlives the items";
  clock_.Advance(kRetention.batch - kRetention.items);
  Sweep();
  EXPECT_EQ(Left(1), "");
  EXPECT_EQ(Files(), files_without_blobs_);
  EXPECT_EQ(ledger_->HighestNumber().value(), 1u) << "a number is never given twice";
  EXPECT_TRUE(absl::IsNotFound(ledger_->FindByRequestId("request 1").status()));
}

TEST_F(BatchRemoverTest, RemovesTheBlobsOfACancelledBatchWithItsContent) {
  Create(1);
  Cancel(1);
  clock_.Advance(kRetention.content);
  Sweep();
  EXPECT_EQ(Left(1), "items report ledger");
}

TEST_F(BatchRemoverTest, KeepsABatchOfAnOlderMusterByTheDefaults) {
  Create(1, std::nullopt);
  Complete(1);
  clock_.Advance(ledger::Retention().items - absl::Seconds(1));
  Sweep();
  EXPECT_EQ(Left(1), "items blob report ledger");
  clock_.Advance(absl::Seconds(1));
  Sweep();
  EXPECT_EQ(Left(1), "report ledger");
}

TEST_F(BatchRemoverTest, RemovesNothingOfABatchThatIsOpenAgain) {
  Create(1);
  Complete(1);
  ASSERT_TRUE(ledger_->Reopen(1).ok());
  clock_.Advance(absl::Hours(1000));
  Sweep();
  EXPECT_EQ(Left(1), "content items blob report ledger");
  EXPECT_TRUE(absl::IsFailedPrecondition(remover_.Delete(1)));
  EXPECT_EQ(Left(1), "content items blob report ledger");
}

TEST_F(BatchRemoverTest, OpensNoBatchAgainWhoseItemsAreGone) {
  Create(1);
  Complete(1);
  clock_.Advance(kRetention.items);
  Sweep();
  EXPECT_TRUE(absl::IsFailedPrecondition(ledger_->Reopen(1)));
}

TEST_F(BatchRemoverTest, GoesOnWithARemovalThatWasCutOff) {
  Create(1);
  Complete(1);
  ASSERT_TRUE(ledger_->BeginToDropItems(1).ok());
  clock_.Advance(kRetention.batch);
  Sweep();
  EXPECT_EQ(Left(1), "");
}

// The report's rows under its number are another initiator's.
TEST_F(BatchRemoverTest, LeavesTheReportOfADisownedBatchAlone) {
  Create(1);
  ASSERT_TRUE(ledger_->Disown(1, clock_.Now(), "another's").ok());
  ASSERT_TRUE(remover_.Delete(1).ok());
  EXPECT_EQ(Left(1), "report");
}

// It was cancelled before its initiator could learn that its number is another's.
TEST_F(BatchRemoverTest, LeavesTheReportOfABatchThatAnotherInitiatorHasRegisteredAlone) {
  ledger::Batch batch;
  batch.number = 1;
  batch.owner = "ours";
  batch.request_id = "request 1";
  batch.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  report::BatchShape shape;
  shape.batch = 1;
  shape.job = "shop";
  shape.job_revision = "1";
  shape.owner = "another's";
  ASSERT_TRUE(report_->RegisterBatch(shape).ok());
  Cancel(1);
  ASSERT_TRUE(remover_.Delete(1).ok());
  EXPECT_EQ(Left(1), "report");
}

TEST_F(BatchRemoverTest, DeletesABatchOnRequestAndNoOther) {
  Create(1);
  Create(2);
  Complete(1);
  Cancel(2);
  ASSERT_TRUE(remover_.Delete(1).ok());
  EXPECT_EQ(Left(1), "");
  EXPECT_EQ(Left(2), "content items blob report ledger");
  EXPECT_TRUE(absl::IsNotFound(remover_.Delete(1)));
  ASSERT_TRUE(remover_.Delete(2).ok());
  EXPECT_EQ(Files(), files_without_blobs_);
  EXPECT_THAT(ledger_->ListBelow(UINT64_MAX, 10)->batches, IsEmpty());
}

TEST_F(BatchRemoverTest, LeavesARequestIdToItsNewerBatch) {
  Create(1);
  Complete(1);
  ledger::Batch again;
  again.number = 2;
  again.request_id = "request 1";
  again.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(again).ok());
  ASSERT_TRUE(remover_.Delete(1).ok());
  EXPECT_EQ(ledger_->FindByRequestId("request 1")->number, 2u);
}

TEST_F(BatchRemoverTest, ReleasesARequestIdWithTheContentAndBeforeTheItems) {
  CompleteClaimed(1);
  release_answer_ = absl::UnavailableError("no server");
  clock_.Advance(kRetention.items);
  EXPECT_TRUE(absl::IsUnavailable(remover_.RemoveDue(2).status()));
  EXPECT_TRUE(absl::IsUnavailable(remover_.RemoveDue(2).status()));
  EXPECT_EQ(remover_.ProblemOf(1)->why.message(), "no server");
  EXPECT_EQ(Left(1), "items blob report ledger");
  EXPECT_TRUE(absl::IsUnavailable(remover_.Delete(1)));
  EXPECT_EQ(Left(1), "items blob report ledger");
  release_answer_ = absl::OkStatus();
  released_.clear();
  Sweep();
  EXPECT_THAT(released_, ElementsAre(1));
  EXPECT_FALSE(ledger_->Get(1)->request_claimed);
  EXPECT_EQ(Left(1), "report ledger");
}

TEST_F(BatchRemoverTest, AClaimThatCannotBeReleasedHidesNoOtherBatch) {
  for (const uint64_t batch : {1, 2, 3}) CompleteClaimed(batch);
  release_answer_ = absl::UnavailableError("no server");
  clock_.Advance(kRetention.content);
  for (const uint64_t batch : {1, 2, 3}) {
    EXPECT_EQ(Left(batch), "content items blob report ledger");
    EXPECT_TRUE(absl::IsUnavailable(remover_.RemoveDue(1).status()));
    EXPECT_EQ(Left(batch), "items blob report ledger");
  }
  EXPECT_THAT(released_, ElementsAre(1, 1, 1)) << "the store is asked once a call";
}

// A claim whose record is damaged was tried first with each call, so that all others stayed, and
// with them their batches.
TEST_F(BatchRemoverTest, AClaimThatCannotBeReleasedKeepsNoOther) {
  for (const uint64_t batch : {1, 2, 3}) CompleteClaimed(batch);
  std::set<uint64_t> released;
  bool is_mended = false;
  BatchRemover remover({ledger_.get(), &report_client_, blobs_.get(), nullptr, &clock_,
                        [&](const ledger::Batch& batch) -> absl::Status {
                          if (batch.number == 1 && !is_mended) {
                            return absl::DataLossError("no claim of a request id");
                          }
                          released.insert(batch.number);
                          return absl::OkStatus();
                        }});
  clock_.Advance(kRetention.items);
  for (int call = 0; call < 20; ++call) {
    const absl::Status removed = remover.RemoveDue(1).status();
    EXPECT_TRUE(removed.ok() || absl::IsDataLoss(removed)) << removed;
    clock_.Advance(absl::Minutes(1));
  }
  EXPECT_THAT(released, ElementsAre(2, 3));
  EXPECT_EQ(Left(1), "items blob report ledger") << "its content is gone all the same";
  for (const uint64_t batch : {2, 3}) EXPECT_EQ(Left(batch), "report ledger");
  EXPECT_EQ(remover.ProblemOf(1)->why.message(), "no claim of a request id");
  is_mended = true;
  clock_.Advance(absl::Hours(1));
  while (*remover.RemoveDue(1) > 0) {
  }
  EXPECT_EQ(Left(1), "report ledger");
}

// Twenty of them filled each step: nothing else was ever removed.
TEST_F(BatchRemoverTest, BatchesThatCannotBeRemovedHideNoOther) {
  for (uint64_t number = 1; number <= 23; ++number) {
    Create(number);
    report::CommitRequest commit;
    commit.partition = "acme/out";
    for (const uint64_t index : {0, 1}) {
      report::CountedItem& item = commit.items.emplace_back();
      item.batch = number;
      item.index = index;
      item.transactions = 1;
      item.attempts = 1;
      item.outcome = report::ItemOutcome::kDeadLettered;
      item.cause = "it is poison";
    }
    ASSERT_TRUE(report_->Commit(commit).ok());
    Complete(number);
  }
  bool is_mended = false;
  std::set<uint64_t> tried;
  BatchRemover remover({ledger_.get(), &report_client_, blobs_.get(), nullptr, &clock_, nullptr,
                        [&](const ledger::Batch& batch, uint64_t) -> absl::Status {
                          tried.insert(batch.number);
                          if (batch.number > 20 || is_mended) return absl::OkStatus();
                          return absl::PermissionDeniedError("not ours to read");
                        }});
  clock_.Advance(kRetention.content);
  EXPECT_TRUE(absl::IsPermissionDenied(remover.RemoveDue(20).status()));
  EXPECT_EQ(*remover.RemoveDue(20), 3u);
  EXPECT_EQ(*remover.RemoveDue(20), 0u) << "those that failed are not tried yet";
  EXPECT_EQ(tried.size(), 23u);
  const absl::Time since = clock_.Now();
  EXPECT_FALSE(remover.ProblemOf(1).has_value()) << "it may be about to end";
  for (const int minutes : {1, 2, 4}) {
    clock_.Advance(absl::Minutes(minutes));
    EXPECT_TRUE(absl::IsPermissionDenied(remover.RemoveDue(20).status()));
    EXPECT_EQ(*remover.RemoveDue(20), 0u);
  }
  EXPECT_EQ(remover.ProblemOf(1)->since, since);
  EXPECT_EQ(remover.ProblemOf(1)->why.message(), "not ours to read");
  EXPECT_FALSE(remover.ProblemOf(21).has_value());
  EXPECT_THAT(remover.Problems(UINT64_MAX, 3), ElementsAre(20, 19, 18));
  EXPECT_THAT(remover.Problems(3, 3), ElementsAre(2, 1));
  is_mended = true;
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(*remover.RemoveDue(20), 20u);
  EXPECT_FALSE(remover.ProblemOf(1).has_value());
  EXPECT_THAT(remover.Problems(UINT64_MAX, 3), IsEmpty());
}

TEST_F(BatchRemoverTest, ReleasesTheRequestIdOfABatchThatIsDeletedOnRequest) {
  CompleteClaimed(1);
  ASSERT_TRUE(remover_.Delete(1).ok());
  EXPECT_THAT(released_, ElementsAre(1));
  EXPECT_EQ(Left(1), "");
}

TEST_F(BatchRemoverTest, BeginsWithWhatIsLongestDue) {
  Create(1);
  Create(2);
  Create(3);
  Complete(1);
  clock_.Advance(absl::Minutes(30));
  Complete(2);
  clock_.Advance(absl::Minutes(30));
  EXPECT_THAT(ledger_->ListDue(clock_.Now(), 10).value(), ElementsAre(1));
  clock_.Advance(absl::Minutes(30));
  EXPECT_THAT(ledger_->ListDue(clock_.Now(), 10).value(), ElementsAre(1, 2));
  EXPECT_THAT(ledger_->ListDue(clock_.Now(), 1).value(), ElementsAre(1));
}

}  // namespace
}  // namespace muster::initiator::retention
