// SPDX-License-Identifier: Apache-2.0

// How a controller ends batches: once all is counted, whatever happens to the batch meanwhile.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/controller/controller.h"
#include "tests/fakes/controller/controller_fixture.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One after the other, each waited for its initiator: hundreds of small batches took a minute.
TEST_F(ControllerTest, CompletesSeveralBatchesAtATime) {
  constexpr int kBatches = 4;
  records_->MarkTogether(kBatches);
  for (int i = 0; i < kBatches; ++i) {
    OpenBatch(1, true, kBatch + static_cast<uint64_t>(i));
    v1::ItemResult result = Result(0);
    result.set_batch(kBatch + static_cast<uint64_t>(i));
    PutQuietly({result});
  }
  Start();
  host_->AwaitCompletions(kBatches);
  for (int i = 0; i < kBatches; ++i) {
    const uint64_t number = kBatch + static_cast<uint64_t>(i);
    EXPECT_EQ(ledger_->Get(number)->state, ledger::BatchState::kComplete) << number;
  }
}

TEST_F(ControllerTest, CompletesWhateverTheOrder) {
  OpenBatch(40);
  std::vector<v1::ItemResult> results;
  for (uint32_t i = 40; i > 0; --i) results.push_back(Result(i - 1));
  Start();
  Put(results);
  host_->AwaitCompletions(1);
  EXPECT_THAT(Rows(), ElementsAre("ann 50.00"));
}

// Each of them read all rows of its batch, and held up the results of others.
TEST_F(ControllerTest, MakesNoReceiptAnewForALateCopy) {
  OpenBatch(2);
  Start();
  Put({Result(0), Result(1)});
  host_->AwaitCompletions(1);
  Put({Result(1)});
  host_->AwaitCompletions(2);
  Stop();
  EXPECT_EQ(report_->receipts(), 1);
  EXPECT_EQ(GetProgress().duplicates, 1);
  EXPECT_EQ(GetProgress().receipt_revision, 1);
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_F(ControllerTest, CountsAnItemThatARedriveSaved) {
  OpenBatch(2);
  Start();
  Put({Result(0), DeadLetter(1, "handler died")});
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().dead_lettered, 10);
  Put({Result(1)});
  host_->AwaitCompletions(2);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().dead_lettered, 0);
  EXPECT_EQ(GetProgress().receipt_revision, 2) << "the receipt is issued again";
  EXPECT_TRUE(report::VerifyReceipt(**sqlite_->Read(), kBatch)->ok());
}

// The controller has seen all items counted; before it asks for the receipt, a redrive reopens an
// item.
TEST_F(ControllerTest, GoesOnWhenARedriveTakesAnItemBackBeforeTheReceiptIsIssued) {
  OpenBatch(2);
  report_->BeforeNextReceipt([this] { return sqlite_->ReopenDeadLettered(kBatch, {1}); });
  Start();
  Put({Result(0), DeadLetter(1, "handler died")});
  host_->AwaitItems(2);
  Put({Result(1)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().dead_lettered, 0);
  EXPECT_EQ(GetProgress().receipt_revision, 1);
  EXPECT_TRUE(report::VerifyReceipt(**sqlite_->Read(), kBatch)->ok());
}

// The initiator is about to record the cancellation in the ledger, too.
TEST_F(ControllerTest, GoesOnWithoutAReceiptWhenTheBatchIsCancelledJustBeforeIt) {
  OpenBatch(2);
  report_->BeforeNextReceipt([this] {
    return sqlite_->CancelBatch(kBatch, {clock_.Now(), "by mistake"});
  });
  Start();
  Put({Result(0), Result(1)});
  host_->AwaitItems(2);
  Put({Result(1)});  // a late copy
  PassUntil(absl::InfiniteDuration());
  Stop();
  EXPECT_EQ(Stats().stored(), 0) << "the controller goes on";
  EXPECT_EQ(GetProgress().duplicates, 1);
  EXPECT_EQ(GetProgress().receipt_revision, 0);
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kSealed);
}

// The batch was deleted on request, and the counting of its job ended: the others waited for ever.
TEST_F(ControllerTest, GoesOnWhenTheBatchIsDeletedJustBeforeItsReceipt) {
  OpenBatch(1);
  report_->BeforeNextReceipt([this] {
    EXPECT_TRUE(*sqlite_->ForgetBatch(kBatch, 1000));
    return absl::OkStatus();
  });
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  PassUntil(absl::InfiniteDuration());
  Stop();
  EXPECT_EQ(Stats().stored(), 0) << "the controller goes on";
  EXPECT_TRUE(absl::IsNotFound((*sqlite_->Read())->GetProgress(kBatch).status()));
}

// Its results are settled all the same, or they would come again each time.
TEST_F(ControllerTest, SettlesTheResultsOfABatchWhoseReceiptIsRefusedAndAsksForItAgain) {
  OpenBatch(1);
  const auto refuse = [] { return absl::FailedPreconditionError("they do not agree"); };
  report_->BeforeNextReceipt(refuse);
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  clock_.AwaitSleepers(1);
  report_->BeforeNextReceipt(refuse);
  const absl::Status trouble = AwaitTrouble();
  EXPECT_TRUE(absl::IsAborted(trouble)) << trouble;
  EXPECT_THAT(trouble.message(), ::testing::HasSubstr("they do not agree"));
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(Stats().stored(), 0);
  EXPECT_EQ(GetProgress().duplicates, 0);
}

// A check must not end the counting of the job.
TEST_F(ControllerTest, ChecksABatchLaterWhileTheReportCannotBeRead) {
  OpenBatch(1, /*seal=*/false);
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  clock_.AwaitSleepers(1);
  report_->BeUnreadable(true);
  Seal();
  absl::Status trouble;
  while (trouble.ok()) {
    clock_.Advance(absl::Seconds(1));  // between its tries
    trouble = controller_->CheckCompletion(kBatch);
  }
  EXPECT_THAT(trouble.message(), HasSubstr("the report is put back"));
  report_->BeUnreadable(false);
  while (ledger_->Get(kBatch)->state != ledger::BatchState::kComplete) {
    clock_.Advance(absl::Seconds(1));
    controller_->CheckCompletion(kBatch).IgnoreError();
  }
}

// The ledger cannot be read any more after all results were counted.
TEST_F(ControllerTest, CompletesABatchLaterWhoseLedgerCannotBeReadAtItsEnd) {
  OpenBatch(1, /*seal=*/false);
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  records_->Fail(kBatch, absl::DataLossError("its record is corrupt"));
  Seal();
  EXPECT_TRUE(absl::IsAborted(AwaitTrouble())) << "what the check before met";
  records_->Fail(kBatch, absl::OkStatus());
  controller_->CheckCompletion(kBatch).IgnoreError();  // it may tell what was so before
  host_->AwaitCompletions(1);
}

TEST_F(ControllerTest, CompletesABatchThatIsSealedAfterItsLastResult) {
  OpenBatch(1, /*seal=*/false);
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  Seal();
  EXPECT_EQ(controller_->CheckCompletion(kBatch), absl::OkStatus());
  host_->AwaitCompletions(1);
}

TEST_F(ControllerTest, CompletesAnEmptyBatch) {
  OpenBatch(0);
  Start();
  EXPECT_EQ(controller_->CheckCompletion(kBatch), absl::OkStatus());
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().receipt_revision, 1);
}

}  // namespace
}  // namespace muster::controller
