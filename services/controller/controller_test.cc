// SPDX-License-Identifier: Apache-2.0
#include "services/controller/controller.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/base/retry.h"
#include "muster/job/job_file.h"
#include "tests/fakes/controller/controller_fixture.h"

namespace muster::controller {
namespace {

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

TEST_F(ControllerTest, DropsResultsThatArriveTwice) {
  OpenBatch(2);
  PutQuietly({Result(0), Result(0), Result(1), Result(1)});
  Start();
  host_->AwaitCompletions(1);
  Stop();
  EXPECT_THAT(Rows(), ElementsAre("ann 2.50"));
  EXPECT_EQ(GetProgress().duplicates, 2);
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

TEST_F(ControllerTest, LetsResultsShareATransaction) {
  OpenBatch(3);
  PutQuietly({Result(0)});
  Options options;
  options.linger = absl::Seconds(1);
  Start(options);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(report_->commits(), 0) << "it waits for others to come";
  Put({Result(1), Result(2)});
  clock_.Advance(absl::Milliseconds(2));
  host_->AwaitCompletions(1);
  EXPECT_EQ(report_->commits(), 1) << "and waits no longer than for the last one";
}

// Looks every two milliseconds were more calls of the queue store than all others of a batch
// together.
TEST_F(ControllerTest, LooksForMoreOnlyWhenThereIsMore) {
  OpenBatch(3);
  PutQuietly({Result(0)});
  Options options;
  options.linger = absl::Seconds(1);
  Start(options);
  clock_.AwaitSleepers(1);
  PutQuietly({Result(1)});
  clock_.Advance(absl::Milliseconds(500));
  clock_.AwaitSleepers(1);
  EXPECT_EQ(Stats().ready, 1) << "nothing has told of it";
  Put({Result(2)});
  host_->AwaitCompletions(1);
  EXPECT_EQ(report_->commits(), 1);
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
