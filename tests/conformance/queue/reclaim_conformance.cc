// SPDX-License-Identifier: Apache-2.0

// Reclaim: a reader that is alone with a queue takes over from one that died.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "muster/queue/queue_store.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> TextsOf(const std::vector<Message>& messages) {
  std::vector<std::string> bodies;
  for (const Message& message : messages) bodies.push_back(message.body);
  return bodies;
}

TEST_P(QueueConformanceTest, ShowsThePositionThatThePutHas) {
  const PutResult first = Put("a"), second = Put("b");
  EXPECT_LT(first.position, second.position);
  EXPECT_EQ(ReceiveOne().position, first.position);
  EXPECT_EQ(ReceiveOne().position, second.position);
}

TEST_P(QueueConformanceTest, ReclaimsWhatADeadReaderHeldInTheOrderOfThePuts) {
  for (const char* body : {"1", "2", "3", "4", "5", "6"}) Put(body);
  EXPECT_THAT(ReceiveBodies(4), ElementsAre("1", "2", "3", "4"));  // its reader dies
  EXPECT_THAT(TextsOf(ReclaimAll()), ElementsAre("1", "2", "3", "4", "5", "6"));
}

TEST_P(QueueConformanceTest, ReclaimsWhatWasGivenBackForLaterOrOutOfOrder) {
  for (const char* body : {"1", "2", "3", "4"}) Put(body);
  const std::vector<Message> held = Receive(3);
  ASSERT_EQ(held.size(), 3u);
  ASSERT_TRUE(Release(held[2].receipt).ok());
  ASSERT_TRUE(Release(held[0].receipt, absl::Hours(1)).ok());
  ASSERT_TRUE(Release(held[1].receipt).ok());
  EXPECT_THAT(TextsOf(ReclaimAll()), ElementsAre("1", "2", "3", "4"));
}

TEST_P(QueueConformanceTest, ReclaimsNothingThatIsSettled) {
  for (const char* body : {"1", "2", "3", "4"}) Put(body);
  const std::vector<Message> held = Receive(3);
  ASSERT_TRUE(Delete(held[1].receipt).ok());
  ASSERT_TRUE(DeadLetter(held[0].receipt, "poison").ok());
  EXPECT_THAT(TextsOf(ReclaimAll()), ElementsAre("3", "4"));
  EXPECT_THAT(PoisonBodies(), ElementsAre("1"));
}

TEST_P(QueueConformanceTest, ReclaimsAnEmptyQueueAndOneThatNobodyReads) {
  EXPECT_THAT(ReclaimAll(), IsEmpty());
  Put("1");
  Put("2");
  EXPECT_THAT(TextsOf(ReclaimAll()), ElementsAre("1", "2"));
}

TEST_P(QueueConformanceTest, ReclaimsAgainAndAgain) {
  for (const char* body : {"1", "2", "3"}) Put(body);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(TextsOf(ReclaimAll()), ElementsAre("1", "2", "3"));
}

TEST_P(QueueConformanceTest, KeepsAttemptsAndSuspectsWhenItReclaims) {
  Put("deadly");
  Put("calm");
  const Message deadly = ReceiveOne(), calm = ReceiveOne();
  ASSERT_TRUE(BeginAttempt(deadly.receipt).ok());  // and the process dies
  const std::vector<Message> again = ReclaimAll();
  ASSERT_THAT(TextsOf(again), ElementsAre("deadly", "calm"));
  EXPECT_EQ(again[0].attempts, 1);
  EXPECT_TRUE(again[0].interrupted);
  EXPECT_EQ(again[1].attempts, 0);
  EXPECT_FALSE(again[1].interrupted);
}

TEST_P(QueueConformanceTest, RefusesEarlierReceiptsOnceItIsReclaimed) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  Put("1");
  const Message held = ReceiveOne();
  ASSERT_THAT(TextsOf(ReclaimAll()), ElementsAre("1"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(held.receipt)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Release(held.receipt).status()));
}

TEST_P(QueueConformanceTest, ReclaimsNoQueueThatIsNotThere) {
  EXPECT_TRUE(absl::IsNotFound(store_->Reclaim({"acme", "none"}).status()));
}

TEST_P(QueueConformanceTest, KeepsTheOrderOfAReclaimOverARestart) {
  for (const char* body : {"1", "2", "3"}) Put(body);
  const std::vector<Message> held = Receive(2);
  ASSERT_TRUE(Release(held[1].receipt).ok());
  ASSERT_TRUE(store_->Reclaim(queue_).ok());
  Restart();
  EXPECT_THAT(TextsOf(ReclaimAll()), ElementsAre("1", "2", "3"));
}

}  // namespace

bool LinkReclaimTests() { return true; }

}  // namespace muster::queue::conformance
