// Cancelled batches and their receipts.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(BatchServiceTest, CancelsABatchWhoseContentTheJobCannotRead) {
  const auto submitted = Submit("bad", "no such column\n1\n");
  uint64_t batch = 1;
  if (submitted.ok()) batch = submitted->batch();
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
