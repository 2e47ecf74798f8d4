// SPDX-License-Identifier: Apache-2.0
#include "services/controller/controller.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/base/retry.h"
#include "muster/job/job_file.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/controller/controller_fixture.h"

namespace muster::controller {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ControllerTest, CountsResultsAndCompletesTheBatch) {
  OpenBatch(3);
  Start();
  Put({Result(0), Result(1, "bob", "2"), Result(2)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50", "bob 2.00"));
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kComplete);
  EXPECT_EQ(Stats().stored(), 0);
  EXPECT_TRUE(report::VerifyReceipt(**sqlite_->Read(), kBatch)->ok());
}

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

TEST_F(ControllerTest, AsksTheLedgerOfABatchThatItExpectsBeforeItsResultsCome) {
  OpenBatch(2);
  Start();
  controller_->Expect(kBatch);
  while (records_->views() == 0) base::LetOthersRun();
  Put({Result(0), Result(1)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(records_->views(), 1) << "and not again";
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kComplete);
}

// Each commit asked for the record of each of its batches, with the definition of its job.
TEST_F(ControllerTest, AsksTheLedgerOfABatchWhenItBeginsAndWhenAllIsCounted) {
  constexpr int kItems = 10;
  OpenBatch(kItems);
  Start();
  for (int i = 0; i < kItems; ++i) {
    Put({Result(static_cast<uint32_t>(i))});
    host_->AwaitItems(i + 1);
  }
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(records_->questions(), 2);
}

TEST_F(ControllerTest, CountsABatchThatItCouldNotPrepareFor) {
  OpenBatch(1);
  records_->Fail(kBatch, absl::UnavailableError("it cannot be read now"));
  Start();
  controller_->Expect(kBatch);
  while (records_->questions() == 0) base::LetOthersRun();
  controller_->Expect(kBatch + 1);  // never registered
  while (records_->questions() == 1) base::LetOthersRun();
  EXPECT_EQ(records_->views(), 0) << "it could prepare for neither";
  records_->Fail(kBatch, absl::OkStatus());
  Put({Result(0)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_EQ(records_->views(), 1) << "asked again when its result came";
  EXPECT_THAT(Rows(), ElementsAre("ann 1.25"));
  EXPECT_EQ(ledger_->Get(kBatch)->state, ledger::BatchState::kComplete);
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_F(ControllerTest, TellsThoseWhoWaitWhatBecameOfABatchThatItCountsAtOnce) {
  OpenBatch(2);
  records_->WantOutcomes();
  PutQuietly({Result(1), Result(0)});
  Start();
  host_->AwaitCompletions(1);
  const std::optional<ledger::BatchOutcome> told = records_->Told(kBatch);
  ASSERT_TRUE(told.has_value());
  ASSERT_EQ(told->rejections.size(), 2u);
  EXPECT_EQ(told->rejections[0].line, 1);  // in the order of the input
  EXPECT_EQ(told->rejections[1].line, 2);
  EXPECT_EQ(told->rejections[1].reason, "no price");
  EXPECT_TRUE(told->records.empty());
}

TEST_F(ControllerTest, TellsNothingWhereNoCallerWaits) {
  OpenBatch(1);
  PutQuietly({Result(0)});
  Start();
  host_->AwaitCompletions(1);
  EXPECT_FALSE(records_->Told(kBatch).has_value());
}

// Those who wait read the report, which has it.
TEST_F(ControllerTest, TellsNothingOfABatchThatOneTransactionDidNotCountAsAWhole) {
  OpenBatch(2);
  records_->WantOutcomes();
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  Put({Result(1)});
  host_->AwaitCompletions(1);
  EXPECT_FALSE(records_->Told(kBatch).has_value());
}

TEST_F(ControllerTest, TellsNothingOfABatchWithDeadLetters) {
  OpenBatch(2);
  records_->WantOutcomes();
  PutQuietly({Result(0), DeadLetter(1, "handler died")});
  Start();
  host_->AwaitCompletions(1);
  EXPECT_FALSE(records_->Told(kBatch).has_value());
}

TEST_F(ControllerTest, TellsNothingOfResultsThatWereCountedBefore) {
  OpenBatch(2);
  records_->WantOutcomes();
  PutQuietly({Result(0), Result(1)});
  report_->FailNext({.commits_first = true, .status = absl::InternalError("killed")});
  Start();
  EXPECT_EQ(host_->AwaitError().code(), absl::StatusCode::kInternal);
  Stop();
  host_ = std::make_unique<Host>();
  clock_.Advance(Options().visibility);
  Start();
  host_->AwaitCompletions(1);
  EXPECT_FALSE(records_->Told(kBatch).has_value());
}

TEST_F(ControllerTest, FindsResultsThatWaitedForIt) {
  OpenBatch(2);
  PutQuietly({Result(0), Result(1)});
  Start();
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().items(), 2);
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

TEST_F(ControllerTest, DropsResultsThatArriveTwice) {
  OpenBatch(2);
  PutQuietly({Result(0), Result(0), Result(1), Result(1)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().duplicates, 2);
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

TEST_F(ControllerTest, KeepsOutAResultThatContradictsACountedOne) {
  OpenBatch(2);
  PutQuietly({Result(0), Result(0, "ann", "9.99"), Result(1)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().conflicts, 1);
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

// The controller knew the batch, and did not look it up again: it ended, and the results that it
// held, also those of other batches, came again only when their leases had lapsed.
TEST_F(ControllerTest, GoesOnWhenABatchThatItKnowsIsDeletedBeforeAResult) {
  OpenBatch(2);
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  records_->Fail(kBatch, absl::NotFoundError("it was deleted"));
  ASSERT_TRUE(*sqlite_->ForgetBatch(kBatch, 1000));
  Put({Result(1)});
  PassUntil(absl::InfiniteDuration());
  Stop();
  EXPECT_EQ(Stats().stored(), 0) << "the controller goes on";
  EXPECT_THAT(PoisonCauses(), ElementsAre(HasSubstr("no initiator that is known here has batch")));
}

// Two initiators have drawn one number, and the one whose batch it is not answers.
TEST_F(ControllerTest, CountsNothingByALedgerThatIsNotTheOwners) {
  ledger::Batch batch;
  batch.number = kBatch;
  batch.request_id = "request";
  batch.job = "shop";
  batch.job_revision = "r1";
  batch.owner = "directory b";
  batch.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  ledger::ItemBoundary item;
  item.length = 100;
  item.transactions = 10;
  item.content = base::Fingerprint("slice 0");
  ASSERT_TRUE(ledger_->Append(kBatch, 0, {item}).ok());
  report::BatchShape shape{
      kBatch, "shop", "r1", {{"by_customer", {"customer"}, {{"revenue", false, 2}}}}};
  shape.owner = "directory a";
  ASSERT_TRUE(sqlite_->RegisterBatch(shape).ok());
  Seal();
  PutQuietly({Result(0)});
  Start();
  clock_.AwaitSleepers(1);
  Stop();
  EXPECT_EQ(GetProgress().items(), 0);
  EXPECT_EQ(Stats().stored(), 1) << "it waits for its owner's ledger";
  EXPECT_EQ(Stats().poison, 0);
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
  const absl::Status obstacle = AwaitObstacle();
  EXPECT_TRUE(absl::IsAborted(obstacle)) << obstacle;
  EXPECT_THAT(obstacle.message(), ::testing::HasSubstr("they do not agree"));
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
  absl::Status obstacle;
  while (obstacle.ok()) {
    clock_.Advance(absl::Seconds(1));  // between its tries
    obstacle = controller_->CheckCompletion(kBatch);
  }
  EXPECT_THAT(obstacle.message(), HasSubstr("the report is put back"));
  report_->BeUnreadable(false);
  while (ledger_->Get(kBatch)->state != ledger::BatchState::kComplete) {
    clock_.Advance(absl::Seconds(1));
    controller_->CheckCompletion(kBatch).IgnoreError();
  }
}

TEST_F(ControllerTest, CountsTheOtherBatchesWhileTheLedgerOfOneCannotBeRead) {
  constexpr uint64_t kDamaged = 8;
  OpenBatch(2);
  records_->Fail(kDamaged, absl::DataLossError("its record is corrupt"));
  v1::ItemResult damaged = Result(0);
  damaged.set_batch(kDamaged);
  Start();
  EXPECT_EQ(controller_->CheckCompletion(kDamaged), absl::OkStatus());
  Put({Result(0), damaged, Result(1)});
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().duplicates, 0);
  EXPECT_EQ(Stats().stored(), 1) << "the result waits until its ledger is mended";
  EXPECT_EQ(Stats().poison, 0);
}

TEST_F(ControllerTest, CountsTheResultsOfABatchWhoseLedgerIsMended) {
  OpenBatch(2);
  records_->Fail(kBatch, absl::DataLossError("its record is corrupt"));
  PutQuietly({Result(0), Result(1)});
  Start();
  clock_.AwaitSleepers(1);
  EXPECT_EQ(Stats().stored(), 2);
  records_->Fail(kBatch, absl::OkStatus());
  clock_.Advance(absl::Milliseconds(250));
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().items(), 2);
  EXPECT_EQ(GetProgress().duplicates, 0);
}

// The ledger cannot be read any more after all results were counted.
TEST_F(ControllerTest, CompletesABatchLaterWhoseLedgerCannotBeReadAtItsEnd) {
  OpenBatch(1, /*seal=*/false);
  Start();
  Put({Result(0)});
  host_->AwaitItems(1);
  records_->Fail(kBatch, absl::DataLossError("its record is corrupt"));
  Seal();
  EXPECT_TRUE(absl::IsAborted(AwaitObstacle())) << "what the check before met";
  records_->Fail(kBatch, absl::OkStatus());
  controller_->CheckCompletion(kBatch).IgnoreError();  // it may tell what was so before
  host_->AwaitCompletions(1);
}

TEST_F(ControllerTest, PutsAsideWhatCanNeverCount) {
  OpenBatch(2);
  v1::ItemResult stray = Result(0);
  stray.set_batch(99);
  v1::ItemResult other_slice = Result(1);
  other_slice.set_content_hash(std::string(16, 'x'));
  v1::ItemResult no_number = Result(0, "ann", "1,25");
  v1::ItemResult no_outcome = Result(0);
  no_outcome.clear_outcome();
  PutBody("garbage");
  PutQuietly({stray, Result(5), other_slice, no_number, no_outcome, Result(0), Result(1)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(PoisonCauses(),
              ElementsAre(HasSubstr("no result"), HasSubstr("batch 99"), HasSubstr("no item 5"),
                          HasSubstr("another slice"), HasSubstr("1,25"), HasSubstr("no outcome")));
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
}

std::string Together(const std::vector<v1::ItemResult>& results) {
  v1::ItemResult whole;
  whole.set_batch(results.front().batch());
  for (const v1::ItemResult& result : results) whole.add_together(result.SerializeAsString());
  return whole.SerializeAsString();
}

TEST_F(ControllerTest, CountsResultsThatTravelTogether) {
  OpenBatch(3);
  PutBody(Together({Result(0), Result(1, "bob", "2")}));
  PutBody(Together({Result(1, "bob", "2"), Result(2)}));
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50", "bob 2.00"));
  EXPECT_EQ(GetProgress().duplicates, 1);
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_F(ControllerTest, CountsWhatIsSoundInAMessageBeforeItPutsItAside) {
  OpenBatch(2);
  PutBody(Together({Result(0), Result(5), Result(1)}));
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_THAT(PoisonCauses(), ElementsAre(HasSubstr("no item 5")));
}

// A processor was upgraded before its controller: the controller must not lose its results.
TEST_F(ControllerTest, LeavesResultsToANewerControllerThatItCannotReadItself) {
  OpenBatch(2);
  v1::ItemResult newer = Result(1);
  newer.clear_outcome();
  PutBody(newer.SerializeAsString() + "\xa2\x06\x03new");
  PutQuietly({Result(0)});
  Start();
  host_->AwaitItems(1);
  Stop();
  EXPECT_THAT(PoisonCauses(), IsEmpty());
  EXPECT_EQ(Stats().stored(), 1);
  EXPECT_THAT(Rows(), ElementsAre("ann 1.25"));
}

constexpr char kBlob[] = "batch-7-item-0-result-1-large";

// Moves the result's rows into a blob, as a processor does with a large one.
v1::ItemResult ClaimChecked(v1::ItemResult result, blob::BlobStore& blobs) {
  EXPECT_TRUE(blobs.Put(kBlob, result.aggregated().SerializeAsString()).ok());
  result.mutable_claimed_aggregated()->set_blob(kBlob);
  return result;
}

TEST_F(ControllerTest, CountsAClaimCheckedResultAndRemovesItsBlob) {
  OpenBatch(1);
  PutQuietly({ClaimChecked(Result(0), *blobs_)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 1.25"));
  EXPECT_TRUE(absl::IsNotFound(blobs_->Get(kBlob).status()));
}

TEST_F(ControllerTest, PutsAsideAResultWhoseBlobIsGone) {
  OpenBatch(1);
  const v1::ItemResult claimed = ClaimChecked(Result(0), *blobs_);
  ASSERT_TRUE(blobs_->Delete(kBlob).ok());
  PutQuietly({claimed, Result(0)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(PoisonCauses(), ElementsAre(HasSubstr(absl::StrCat("blob ", kBlob, " is gone"))));
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

// The state after kill -9 between commit and delete: the messages come again, and do not count a
// second time.
TEST_F(ControllerTest, CountsNothingTwiceAfterACrashBetweenCommitAndDelete) {
  OpenBatch(2);
  PutQuietly({Result(0), Result(1)});
  report_->FailNext({.commits_first = true, .status = absl::InternalError("killed")});
  Start();
  EXPECT_EQ(host_->AwaitError().code(), absl::StatusCode::kInternal);
  Stop();
  EXPECT_EQ(Stats().in_flight, 2) << "not deleted";

  host_ = std::make_unique<Host>();
  clock_.Advance(Options().visibility);
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().duplicates, 2);
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_F(ControllerTest, CommitsAgainWhenTheOutcomeIsUnknown) {
  OpenBatch(1);
  PutQuietly({Result(0)});
  report_->FailNext({.commits_first = true, .status = absl::UnavailableError("timed out")});
  report_->FailNext({.commits_first = false, .status = absl::UnavailableError("busy")});
  Start();
  for (int retry = 0; retry < 2; ++retry) {
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(1));
  }
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 1.25"));
  EXPECT_EQ(report_->commits(), 3);
}

// Else they would stay where they are for a lease and a safety check after the report is back.
TEST_F(ControllerTest, GivesBackAtOnceWhatTheReportDoesNotTakeForNow) {
  OpenBatch(1);
  PutQuietly({Result(0)});
  for (int i = 0; i < base::RetryOptions().max_attempts; ++i) {
    report_->FailNext({.commits_first = false, .status = absl::UnavailableError("locked")});
  }
  Start();
  for (int i = 1; i < base::RetryOptions().max_attempts; ++i) {
    clock_.AwaitSleepers(1);
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_TRUE(absl::IsUnavailable(host_->AwaitError()));
  Stop();
  ASSERT_EQ(Stats().ready, 1);

  host_ = std::make_unique<Host>();
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 1.25"));
  EXPECT_EQ(GetProgress().duplicates, 0);
}

TEST_F(ControllerTest, StopsWhenAnotherOwnsThePartition) {
  OpenBatch(1);
  ASSERT_TRUE(sqlite_->Commit({output_.ToString(), 5, {}}).ok());
  PutQuietly({Result(0)});
  Start();
  EXPECT_EQ(host_->AwaitError().code(), absl::StatusCode::kFailedPrecondition);
  Stop();
  EXPECT_EQ(Stats().stored(), 1) << "left to the owner";
  EXPECT_EQ(GetProgress().items(), 0);
}

TEST_F(ControllerTest, FindsWorkWhoseTriggerWasLost) {
  OpenBatch(1);
  Start();
  clock_.AwaitSleepers(1);
  PutQuietly({Result(0)});
  clock_.Advance(Options().safety_check_interval);
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().items(), 1);
}

// When both were killed, the controller receives the first heartbeat of the ledger's initiator a
// moment after its own start.
TEST_F(ControllerTest, CountsResultsSoonAfterTheLedgerOfTheirBatchIsBack) {
  OpenBatch(3);
  PutQuietly({Result(0)});
  PutBody(Together({Result(1), Result(2)}));
  records_->BeAwayFor(3);
  Start();
  for (const auto away : {absl::Milliseconds(250), absl::Milliseconds(500), absl::Seconds(1)}) {
    clock_.AwaitSleepers(1);
    EXPECT_EQ(Stats().stored(), 2);
    clock_.Advance(away);
  }
  host_->AwaitCompletions(1);
  EXPECT_EQ(GetProgress().items(), 3);
  EXPECT_EQ(GetProgress().duplicates, 0);
}

// No controller was there while the initiator put the items, so it could not register the batch. No
// processor works on a cancelled batch any more.
TEST_F(ControllerTest, CountsResultsOfABatchThatWasCancelledBeforeTheReportKnewIt) {
  constexpr char kShop[] = R"(
name: shop
input: {format: csv, columns: {customer: customer}}
handler: {linked: shop}
groups:
  - {name: by_customer, keys: [customer], measures: {revenue: decimal(2)}}
)";
  const auto job = job::ParseJob(kShop, "shop.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  ledger::Batch batch;
  batch.number = kBatch;
  batch.request_id = "request";
  batch.job = job->name;
  batch.job_revision = job->revision;
  batch.job_definition = kShop;
  batch.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  ledger::ItemBoundary item;
  item.length = 100;
  item.transactions = 10;
  item.content = base::Fingerprint("slice 0");
  ASSERT_TRUE(ledger_->Append(kBatch, 0, {item}).ok());
  ASSERT_TRUE(ledger_->Cancel(kBatch, clock_.Now(), "by mistake").ok());
  v1::ItemResult result = Result(0);
  result.set_job_revision(job->revision);
  PutQuietly({result});
  Start();
  host_->AwaitItems(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 1.25"));
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_F(ControllerTest, LooksSoonForResultsThatWaitForALedgerAlsoAfterOtherWork) {
  OpenBatch(1);
  PutBody("no result");
  PutQuietly({Result(0)});
  records_->BeAwayFor(1);
  Start();
  clock_.AwaitSleepers(1);
  EXPECT_EQ(Stats().poison, 1);
  clock_.Advance(absl::Milliseconds(250));
  host_->AwaitCompletions(1);
}

// They would hold up the job for ever.
TEST_F(ControllerTest, PutsAsideResultsOfABatchThatNoInitiatorHasHadForAWhile) {
  OpenBatch(2);
  records_->BeUnknownToAll(true);
  PutQuietly({Result(0), Result(1)});
  Options options = Instantly();
  Start(options);
  const absl::Duration start = clock_.Monotonic();
  PassUntil(start + options.unknown_batch_grace - absl::Seconds(31));
  EXPECT_EQ(Stats().stored(), 2) << "the initiator may come back";
  EXPECT_EQ(Stats().poison, 0);
  PassUntil(start + 2 * options.unknown_batch_grace);
  EXPECT_EQ(Stats().stored(), 0);
  Stop();
  EXPECT_THAT(PoisonCauses(), Each("no initiator has had the ledger of batch 7 for 10m"));
  EXPECT_EQ(Stats().poison, 2);
}

// An initiator cannot tell what a queue has lost while something old lies at its head.
TEST_F(ControllerTest, MovesWaitingResultsOfABatchThatNoInitiatorHasToTheTail) {
  OpenBatch(2);
  records_->BeUnknownToAll(true);
  PutQuietly({Result(0), Result(1)});
  const uint64_t end = queues_->Extent(output_)->next;
  Start();
  const absl::Duration start = clock_.Monotonic();
  PassUntil(start + absl::Minutes(1));
  EXPECT_GE(queues_->Extent(output_)->oldest, end) << "the head of that moment has gone";
  EXPECT_EQ(Stats().stored(), 2) << "they wait, once each";
  EXPECT_LE(Stats().total_in, 2 + 2 * 6) << "and are moved no more than each ten seconds";
  records_->BeUnknownToAll(false);
  PassUntil(start + absl::Minutes(5));
  host_->AwaitCompletions(1);
  EXPECT_EQ(Stats().poison, 0);
  EXPECT_EQ(GetProgress().duplicates, 0);
}

// Its initiator would take them for lost, and put their items again.
TEST_F(ControllerTest, LeavesTheWaitingResultsOfABatchWhoseInitiatorDoesNotAnswerAtTheirPlace) {
  OpenBatch(1);
  records_->Fail(kBatch, absl::DataLossError("its record is corrupt"));
  PutQuietly({Result(0)});
  const uint64_t place = queues_->Extent(output_)->oldest;
  Start();
  PassUntil(clock_.Monotonic() + absl::Minutes(1));
  EXPECT_EQ(queues_->Extent(output_)->oldest, place);
}

TEST_F(ControllerTest, CountsResultsWhoseInitiatorComesBackInTime) {
  OpenBatch(2);
  records_->BeUnknownToAll(true);
  PutQuietly({Result(0), Result(1)});
  Options options = Instantly();
  Start(options);
  const absl::Duration start = clock_.Monotonic();
  PassUntil(start + options.unknown_batch_grace - absl::Seconds(31));
  records_->BeUnknownToAll(false);
  PassUntil(start + 2 * options.unknown_batch_grace);
  host_->AwaitCompletions(1);
  EXPECT_EQ(Stats().poison, 0);
}

TEST_F(ControllerTest, LetsResultsShareATransaction) {
  OpenBatch(3);
  PutQuietly({Result(0)});
  Options options;
  options.linger = absl::Seconds(1);
  Start(options);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(report_->commits(), 0) << "it waits for others to come";
  PutQuietly({Result(1), Result(2)});
  clock_.Advance(absl::Milliseconds(2));
  host_->AwaitCompletions(1);
  EXPECT_EQ(report_->commits(), 1) << "and waits no longer than for the last one";
}

TEST_F(ControllerTest, LingersNoLongerThanItWasTold) {
  OpenBatch(2);
  PutQuietly({Result(0)});
  Options options;
  options.linger = absl::Seconds(1);
  Start(options);
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(1));
  host_->AwaitItems(1);
  EXPECT_EQ(GetProgress().items(), 1) << "the other one never came";
}

TEST_F(ControllerTest, CountsAFullHandAtOnce) {
  OpenBatch(100);
  std::vector<v1::ItemResult> results;
  for (uint32_t i = 0; i < 70; ++i) results.push_back(Result(i));
  PutQuietly(results);
  Options options;
  options.linger = absl::Seconds(1);
  options.max_commit_results = 64;
  Start(options);
  host_->AwaitItems(64);
  EXPECT_EQ(GetProgress().items(), 64) << "the rest lingers";
}

TEST_F(ControllerTest, CountsWhatIsInTheHandWhenItStops) {
  OpenBatch(2);
  PutQuietly({Result(0)});
  Options options;
  options.linger = absl::Seconds(1);
  Start(options);
  clock_.AwaitSleepers(1);
  controller_->Stop();
  controller_->Stop();  // twice is fine
  EXPECT_EQ(GetProgress().items(), 1);
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_F(ControllerTest, RefusesOptionsThatCannotWork) {
  const Dependencies none;
  EXPECT_EQ(Controller::Create({}, {}, none).status().code(), absl::StatusCode::kInvalidArgument);
  Options options;
  options.partitions = {output_};
  options.max_commit_results = 0;
  EXPECT_EQ(Controller::Create(options, {}, none).status().code(),
            absl::StatusCode::kInvalidArgument);
  options.max_commit_results = 10;
  options.linger = options.visibility;
  EXPECT_EQ(Controller::Create(options, {}, none).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::controller
