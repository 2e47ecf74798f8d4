// SPDX-License-Identifier: Apache-2.0

// Cancelled batches and their receipts.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_proto.h"
#include "muster/report/report_store.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(BatchServiceTest, BeginsNoBatchOfContentThatComesWholeAndThatTheJobCannotRead) {
  const auto submitted = Submit("bad", "no such column\n1\n");
  EXPECT_TRUE(absl::IsInvalidArgument(submitted.status())) << submitted.status();
  EXPECT_THAT(submitted.status().message(), HasSubstr("has no column"));
  EXPECT_TRUE(absl::IsNotFound(Watch(1).status()));
}

TEST_F(BatchServiceTest, CancelsABatchWhoseContentTheJobCannotRead) {
  const std::string content = "no such column\n1\n";
  Upload upload(stub_.get());
  upload.SendHeader(Header("bad"));
  const uint64_t batch = upload.Hear().accepted().batch();
  upload.SendChunk(0, content);
  upload.SendSeal(content.size(), base::Fingerprint(content));
  upload.End().IgnoreError();
  const auto last = Watch(batch);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->state(), v1::BATCH_STATE_CANCELLED);
  EXPECT_THAT(last->cancel_reason(), HasSubstr("has no column"));
}

TEST_F(BatchServiceTest, GivesABatchUpOnRequest) {
  const auto submitted = Submit("unwanted", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  for (int times = 0; times < 2; ++times) {
    rpc::CallContext context;
    v1::CancelBatchRequest request;
    request.set_batch(submitted->batch());
    request.set_reason(times == 0 ? "sent twice" : "");
    v1::CancelBatchResponse response;
    const absl::Status cancelled = rpc::FromGrpc(stub_->CancelBatch(&context, request, &response));
    ASSERT_TRUE(cancelled.ok()) << cancelled;
    EXPECT_EQ(response.status().state(), v1::BATCH_STATE_CANCELLED);
    EXPECT_EQ(response.status().cancel_reason(), "sent twice");
  }
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_FALSE(last->complete());
}

TEST_F(BatchServiceTest, SaysInTheReceiptThatABatchWasCancelledAndWhatIsCountedSoFar) {
  const auto submitted = Submit("unwanted", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 5);
  ASSERT_TRUE(scheduler_->Cancel(submitted->batch(), "sent twice").ok());
  EXPECT_THAT(Receipt(submitted->batch()),
              AllOf(HasSubstr("\nstate cancelled\n"), HasSubstr("\ncancel_reason sent twice\n"),
                    HasSubstr("\ncounts so_far\nas_of 2"), HasSubstr("\naggregated 0\n"),
                    HasSubstr("\nuncounted 100\n")));
  // This processor does not know of the cancellation: it works on the items nevertheless.
  StartProcessor();
  for (uint64_t seen = 0; scheduler_->Get(submitted->batch())->counted.items() < 5;) {
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Milliseconds(100));
  }
  EXPECT_THAT(Receipt(submitted->batch()),
              AllOf(HasSubstr("\ncounts final\n"), HasSubstr("\naggregated 100\n"),
                    HasSubstr("\nuncounted 0\nitems_by_version 5 1\n")));
}

TEST_F(BatchServiceTest, HasTheReceiptOfABatchThatWasCancelledBeforeAnythingArrived) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("unwanted"));
  const uint64_t batch = upload.Hear().accepted().batch();
  ASSERT_TRUE(scheduler_->Cancel(batch, "").ok());
  EXPECT_THAT(Receipt(batch), AllOf(HasSubstr("\ncancel_reason \ncounts final\n"),
                                    HasSubstr("\ntransactions 0\n")));
  upload.End().IgnoreError();
}

TEST_F(BatchServiceTest, HasNoReceiptOfABatchThatIsStillWorkedOn) {
  const auto submitted = Submit("waits", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 5);
  rpc::CallContext context;
  v1::GetReceiptRequest request;
  request.set_batch(submitted->batch());
  v1::GetReceiptResponse receipt;
  const absl::Status none = rpc::FromGrpc(stub_->GetReceipt(&context, request, &receipt));
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
  EXPECT_THAT(none.message(), HasSubstr("0 of its 5 items"));
}

// Batches that are sealed when they are cancelled: whether they are complete is the report's to
// say.
class SealedCancelTest : public BatchServiceTest {
 protected:
  // Submits a batch of five items, and waits until it is sealed.
  uint64_t SubmitSealed() {
    const auto submitted = Submit("unwanted", Input(100));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    const uint64_t batch = submitted->batch();
    uint64_t seen = 0;
    while (ledger_->Get(batch)->state != ledger::BatchState::kSealed) {
      scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Milliseconds(100));
    }
    return batch;
  }

  // Counts all items and issues the receipt, as a controller that dies before the ledger knows.
  void IssueReceipt(uint64_t number) {
    controller_->Stop();
    const ledger::Batch batch = *ledger_->Get(number);
    ASSERT_TRUE(report_->RegisterBatch(report::ShapeOf(number, job_.schema())).ok());
    report::CommitRequest commit;
    commit.partition = "out";
    for (uint64_t index = 0; index < batch.items; ++index) {
      report::CountedItem& item = commit.items.emplace_back();
      item.batch = number;
      item.index = index;
      item.transactions = item.aggregated = ledger_->Items(number, index, 1)->front().transactions;
      item.attempts = 1;
      item.handler_version = batch.handler_version;
    }
    ASSERT_TRUE(report_->Commit(commit).ok());
    report::BatchFacts facts;
    facts.batch = number;
    facts.job = batch.job;
    facts.job_revision = batch.job_revision;
    facts.handler_version = batch.handler_version;
    facts.items = batch.items;
    facts.transactions = batch.transactions;
    facts.created = batch.created;
    const auto receipt = report_->Complete(facts);
    ASSERT_TRUE(receipt.ok()) << receipt.status();
  }

  absl::Status Cancel(uint64_t batch) {
    rpc::CallContext context;
    v1::CancelBatchRequest request;
    request.set_batch(batch);
    request.set_reason("sent twice");
    v1::CancelBatchResponse response;
    return rpc::FromGrpc(stub_->CancelBatch(&context, request, &response));
  }
};

// Its request id would begin anew, and the same content would count twice.
TEST_F(SealedCancelTest, RefusesToCancelABatchThatHasItsReceipt) {
  const uint64_t batch = SubmitSealed();
  IssueReceipt(batch);
  const absl::Status refused = Cancel(batch);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("is complete"));
  EXPECT_EQ(ledger_->Get(batch)->state, ledger::BatchState::kSealed);
  const auto again = Submit("unwanted", Input(100));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch(), batch);
}

// The controller may have completed it; whether it has is not known.
TEST_F(SealedCancelTest, LeavesABatchAsItIsWhileTheReportDoesNotAnswer) {
  const uint64_t batch = SubmitSealed();
  report_client_->AnswerCancels(absl::DeadlineExceededError("it hangs"));
  const absl::Status unknown = scheduler_->Cancel(batch, "sent twice");
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << unknown;
  EXPECT_THAT(unknown.message(), AllOf(HasSubstr("try again"), HasSubstr("it hangs")));
  EXPECT_EQ(ledger_->Get(batch)->state, ledger::BatchState::kSealed);
  report_client_->AnswerCancels(absl::OkStatus());
  EXPECT_EQ(Cancel(batch), absl::OkStatus());
  EXPECT_EQ(ledger_->Get(batch)->state, ledger::BatchState::kCancelled);
  EXPECT_TRUE((*report_->Read())->GetProgress(batch)->cancelled.has_value());
}

TEST_F(SealedCancelTest, CancelsAnOpenUploadAlsoWhileTheReportDoesNotAnswer) {
  report_client_->AnswerCancels(absl::UnavailableError("no controller is known here"));
  Upload upload(stub_.get());
  upload.SendHeader(Header("unwanted"));
  const uint64_t batch = upload.Hear().accepted().batch();
  EXPECT_EQ(Cancel(batch), absl::OkStatus());
  EXPECT_EQ(ledger_->Get(batch)->state, ledger::BatchState::kCancelled);
  upload.End().IgnoreError();
}

TEST_F(SealedCancelTest, NamesAControllerThatIsTooOldToCancelABatch) {
  const uint64_t batch = SubmitSealed();
  report_client_->AnswerCancels(absl::UnimplementedError(""));
  const absl::Status refused = Cancel(batch);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("upgrade the controller"));
  EXPECT_EQ(ledger_->Get(batch)->state, ledger::BatchState::kSealed);
}

// The answer to the cancel was lost, and so may be the process that asked.
TEST_F(SealedCancelTest, IsFollowedByTheLedgerWhenOnlyTheReportKnowsOfIt) {
  const uint64_t batch = SubmitSealed();
  ASSERT_TRUE(report_->CancelBatch(batch, {absl::FromUnixSeconds(1), "sent twice"}).ok());
  const auto last = Watch(batch);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->state(), v1::BATCH_STATE_CANCELLED);
  EXPECT_EQ(last->cancel_reason(), "sent twice");
}

TEST_F(BatchServiceTest, RefusesTheRestOfAnUploadThatWasCancelled) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("unwanted"));
  upload.Hear();
  ASSERT_TRUE(scheduler_->Cancel(1, "unwanted").ok());
  upload.SendChunk(0, "key\n");
  const absl::Status refused = upload.End();
  EXPECT_TRUE(absl::IsCancelled(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("batch 1 is cancelled"));
}

}  // namespace
}  // namespace muster
