// SPDX-License-Identifier: Apache-2.0

// The initiator's calls to other services during a batch, and their failures.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/item/queue_names.h"
#include "muster/rpc/channel.h"
#include "muster/v1/batch.pb.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// A user waits for the first item to begin, and a controller's answer takes time.
TEST_F(BatchServiceTest, AsksHowFarABatchIsCountedOnlyOnceSomethingIsPut) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("slow"));
  const uint64_t batch = upload.Hear().accepted().batch();
  for (uint64_t seen = 0; report_client_->registered() == 0;) {
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
  }
  scheduler_->Stop();  // the step that registered it is over
  EXPECT_EQ(report_client_->progress_asked(), 0);
  EXPECT_EQ(scheduler_->Get(batch)->counted.items(), 0);
  EXPECT_EQ(report_client_->progress_asked(), 0);
  upload.context.TryCancel();
}

// The first items do not wait for a controller; the initiator puts no others while the controller
// is away.
TEST_F(BatchServiceTest, PutsOneRunOfItemsWhileTheReportIsTold) {
  report_client_->HoldRegistrations(true);
  const auto submitted = Submit("told", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 16);
  EXPECT_EQ(report_client_->registered(), 0);
  report_client_->HoldRegistrations(false);
  AwaitQueued(submitted->batch(), 50);
  EXPECT_GE(report_client_->registered(), 1);  // each look for losses tells the report again
}

TEST_F(BatchServiceTest, AsksForTheQueuesOfAJobOnceForManyBatches) {
  for (const char* request_id : {"first", "second", "third"}) {
    const auto submitted = Submit(request_id, Input(100));
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    AwaitQueued(submitted->batch(), 5);
    EXPECT_EQ(counted_queues_.administered(), 3) << "two for items, one for results";
  }
}

TEST_F(BatchServiceTest, MakesQueuesAgainThatWereDeletedUnderIt) {
  const auto before = Submit("before", Input(100));
  ASSERT_TRUE(before.ok()) << before.status();
  AwaitQueued(before->batch(), 5);
  for (const queue::QueueId& input : item::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->DeleteQueue(input).ok());
  }
  const auto after = Submit("after", Input(100));
  ASSERT_TRUE(after.ok()) << after.status();
  AwaitQueued(after->batch(), 5);
  StartProcessor();
  for (const uint64_t batch : {after->batch(), before->batch()}) {
    const auto last = Watch(batch);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(last->aggregated(), 100);
  }
}

// No new put can reveal that the queues are gone.
TEST_F(BatchServiceTest, PutsAgainWhatWasInQueuesThatWereDeleted) {
  const auto submitted = Submit("all put", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 5);
  for (const queue::QueueId& input : item::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->DeleteQueue(input).ok());
  }
  for (uint64_t seen = 0; ledger_->Get(submitted->batch())->refills == 0;) {
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
  }
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 100);
}

TEST_F(BatchServiceTest, SaysWhyABatchWaitsAsLongAsItDoes) {
  const auto await_problem = [this](bool there) {
    v1::GetBatchRequest request;
    request.set_batch(1);
    v1::GetBatchResponse response;
    for (uint64_t seen = 0;;
         scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Milliseconds(100))) {
      rpc::CallContext context;
      EXPECT_TRUE(stub_->GetBatch(&context, request, &response).ok());
      if (response.status().problem().empty() != there) return response.status().problem();
    }
  };
  counted_queues_.SetDown(true);
  const auto submitted = Submit("waits", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_THAT(await_problem(true), HasSubstr("no queue answers"));
  counted_queues_.SetDown(false);
  await_problem(false);
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 100);
}

TEST_F(BatchServiceTest, PutsAgainWhatAQueueHasLost) {
  const auto submitted = Submit("lost", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 50);
  for (const queue::QueueId& id : item::InputQueues(kAccount, "count", 2)) {
    ASSERT_TRUE(queues_->Clear(id).ok());
  }
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(ledger_->Get(submitted->batch())->refills, 1);
}

}  // namespace
}  // namespace muster
