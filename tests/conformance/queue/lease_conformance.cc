// SPDX-License-Identifier: Apache-2.0

// Visibility, receipts and settlement.
#include <utility>

#include "gmock/gmock.h"
#include "muster/queue/queue_store.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(QueueConformanceTest, GivesAMessageOnceWhileItsLeaseLasts) {
  Put("a");
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  Advance(kVisibility - absl::Milliseconds(1));
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
}

TEST_P(QueueConformanceTest, ReappearsAfterItsVisibilityTimeout) {
  Put("a");
  EXPECT_EQ(ReceiveOne().dequeue_count, 1);
  Advance(kVisibility);
  const Message again = ReceiveOne();
  EXPECT_EQ(again.body, "a");
  EXPECT_EQ(again.dequeue_count, 2);
}

// Kinds of work with different durations have their own queues.
TEST_P(QueueConformanceTest, KeepsALeaseForAsLongAsItsQueueSays) {
  const QueueId brief{"acme", "brief"}, lasting{"acme", "lasting"};
  const absl::Duration short_visibility = kVisibility / 3, long_visibility = 10 * kVisibility;
  for (const auto& [queue, visibility] :
       {std::pair(brief, short_visibility), std::pair(lasting, long_visibility)}) {
    ASSERT_TRUE(store_->CreateQueue(queue, WithVisibility({}, visibility)).ok());
    ASSERT_TRUE(store_->Put(queue, std::vector<NewMessage>(1)).ok());
    ASSERT_EQ(store_->Receive(queue, {1, visibility})->size(), 1u);
  }
  Advance(kVisibility);
  EXPECT_EQ(store_->Receive(brief, {1, short_visibility})->size(), 1u);
  EXPECT_THAT(*store_->Receive(lasting, {1, long_visibility}), IsEmpty());
}

TEST_P(QueueConformanceTest, ChangesTheVisibilityOfAQueueAndLosesNothing) {
  ASSERT_TRUE(SetVisibility(store_, queue_, 10 * kVisibility).ok());
  Put("a");
  Put("b");
  const Receipt held = ReceiveOne(10 * kVisibility).receipt;
  ASSERT_TRUE(SetVisibility(store_, queue_, kVisibility).ok());
  EXPECT_EQ(ReceiveOne().body, "b");
  EXPECT_TRUE(Delete(held).ok());
  Advance(kVisibility);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("b"));
}

TEST_P(QueueConformanceTest, RefusesAVisibilityThatIsNone) {
  const Metadata broken = {{kVisibilityName, "soon"}};
  EXPECT_TRUE(absl::IsInvalidArgument(store_->CreateQueue({"acme", "other"}, broken)));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->SetMetadata(queue_, broken)));
}

TEST_P(QueueConformanceTest, LetsASecondWorkerFinishWhatACrashedOneHeld) {
  Put("1");
  Put("2");
  EXPECT_EQ(ReceiveOne().body, "1");  // its holder crashes
  const Message second = ReceiveOne();
  EXPECT_EQ(second.body, "2");
  EXPECT_TRUE(Delete(second.receipt).ok());
  Advance(kVisibility);
  const Message first = ReceiveOne();
  EXPECT_EQ(first.body, "1");
  EXPECT_TRUE(Delete(first.receipt).ok());
  Advance(kVisibility);
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
}

TEST_P(QueueConformanceTest, ShowsWhenALeaseEnds) {
  if (!traits().per_receive_visibility) GTEST_SKIP();
  const PutResult put = Put("a");
  const Message message = ReceiveOne(absl::Seconds(7));
  EXPECT_EQ(message.message_id, put.message_id);
  EXPECT_EQ(message.insertion_time, clock_.Now());
  EXPECT_EQ(message.next_visible_time, clock_.Now() + absl::Seconds(7));
}

TEST_P(QueueConformanceTest, KeepsLeasesWhenTheWallClockSteps) {
  Put("a");
  ReceiveOne();
  clock_.StepWallClock(absl::Hours(5));
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  clock_.StepWallClock(-absl::Hours(10));
  Advance(kVisibility);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
}

TEST_P(QueueConformanceTest, RefusesAStaleReceiptOnALiveMessage) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  Put("a");
  const Receipt stale = ReceiveOne().receipt;
  Advance(kVisibility);
  const Receipt live = ReceiveOne().receipt;
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(stale)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Release(stale).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(BeginAttempt(stale).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(DeadLetter(stale, "why")));
  EXPECT_EQ(Stats().stale_receipts, 4);
  EXPECT_TRUE(Delete(live).ok());
}

TEST_P(QueueConformanceTest, DeletesWithALapsedReceiptWhileNobodyElseReceived) {
  Put("a");
  const Receipt receipt = ReceiveOne().receipt;
  Advance(2 * kVisibility);
  EXPECT_TRUE(Delete(receipt).ok());
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
}

TEST_P(QueueConformanceTest, AnswersNotFoundForADeletedMessage) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  Put("a");
  const Receipt receipt = ReceiveOne().receipt;
  EXPECT_TRUE(Delete(receipt).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete(receipt)));
  EXPECT_TRUE(absl::IsNotFound(Release(receipt).status()));
}

TEST_P(QueueConformanceTest, RefusesReceiptsThatItNeverGave) {
  Put("a");
  Receipt forged = ReceiveOne().receipt;
  forged[forged.size() / 2] = forged[forged.size() / 2] == 'A' ? 'B' : 'A';
  for (const Receipt& receipt : {Receipt(), Receipt("nonsense"), Receipt("a b/c"), forged}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Delete(receipt))) << receipt;
  }
}

TEST_P(QueueConformanceTest, DeletesWithTheReceiptOfThePut) {
  const PutResult put = Put("a");
  EXPECT_TRUE(Delete(put.receipt).ok());
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
}

TEST_P(QueueConformanceTest, UpdatesWithTheReceiptOfThePut) {
  if (!traits().body_update) GTEST_SKIP();
  UpdateRequest request;
  request.receipt = Put("a").receipt;
  request.visibility = absl::Seconds(5);
  request.body = "b";
  ASSERT_TRUE(Update(request).ok());
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  Advance(absl::Seconds(5));
  EXPECT_THAT(ReceiveBodies(), ElementsAre("b"));
}

TEST_P(QueueConformanceTest, RefusesTheReceiptOfThePutOnceSomebodyReceived) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  const PutResult put = Put("a");
  ReceiveOne();
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(put.receipt)));
}

TEST_P(QueueConformanceTest, ExtendsALease) {
  if (!traits().per_receive_visibility) GTEST_SKIP();
  Put("a");
  UpdateRequest request;
  request.receipt = ReceiveOne().receipt;
  request.visibility = absl::Minutes(10);
  const auto extended = Update(request);
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_EQ(extended->next_visible_time, clock_.Now() + absl::Minutes(10));
  Advance(absl::Minutes(10) - absl::Seconds(1));
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  EXPECT_TRUE(Delete(extended->receipt).ok());
}

TEST_P(QueueConformanceTest, ReplacesTheReceiptWithEachUpdate) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  Put("a");
  const Receipt first = ReceiveOne().receipt;
  UpdateRequest request;
  request.receipt = first;
  request.visibility = kVisibility;
  const auto second = Update(request);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(first)));
  EXPECT_TRUE(Delete(second->receipt).ok());
}

TEST_P(QueueConformanceTest, GivesAMessageBackAtOnce) {
  Put("a");
  ASSERT_TRUE(Release(ReceiveOne().receipt).ok());
  EXPECT_EQ(ReceiveOne().dequeue_count, 2);
}

TEST_P(QueueConformanceTest, ReplacesTheBody) {
  if (!traits().body_update) GTEST_SKIP();
  Put("a");
  UpdateRequest request;
  request.receipt = ReceiveOne().receipt;
  request.body = "progress: half";
  ASSERT_TRUE(Update(request).ok());
  EXPECT_THAT(PeekBodies(), ElementsAre("progress: half"));
  EXPECT_THAT(ReceiveBodies(), ElementsAre("progress: half"));
}

TEST_P(QueueConformanceTest, AnswersEachReceiptOfABatch) {
  Put("a");
  Put("b");
  Put("c");
  const std::vector<Message> messages = Receive(3);
  ASSERT_EQ(messages.size(), 3u);
  ASSERT_TRUE(Delete(messages[1].receipt).ok());
  const auto results = store_->Delete(
      queue_, {messages[0].receipt, messages[1].receipt, "nonsense", messages[2].receipt});
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 4u);
  EXPECT_TRUE((*results)[0].ok());
  if (traits().fenced_receipts) {
    EXPECT_TRUE(absl::IsNotFound((*results)[1]));
  }
  EXPECT_TRUE(absl::IsInvalidArgument((*results)[2]));
  EXPECT_TRUE((*results)[3].ok());
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_P(QueueConformanceTest, SettlesAReceiptThatIsGivenTwiceOnlyOnce) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  Put("a");
  const Receipt receipt = ReceiveOne().receipt;
  const auto results = store_->Delete(queue_, {receipt, receipt});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE((*results)[0].ok());
  EXPECT_FALSE((*results)[1].ok());
  EXPECT_EQ(Stats().total_out, 1);
}

TEST_P(QueueConformanceTest, SettlesNothingWhenThereIsNothingToSettle) {
  EXPECT_THAT(*store_->Delete(queue_, {}), IsEmpty());
  EXPECT_THAT(*store_->Update(queue_, {}), IsEmpty());
  EXPECT_THAT(*store_->BeginAttempt(queue_, {}), IsEmpty());
  EXPECT_THAT(*store_->DeadLetter(queue_, {}), IsEmpty());
  EXPECT_THAT(PutAll({}), IsEmpty());
}

}  // namespace

bool LinkLeaseTests() { return true; }

}  // namespace muster::queue::conformance
