// SPDX-License-Identifier: Apache-2.0

// Attempts, interrupted holders, poison and redrive.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "muster/queue/limits.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(QueueConformanceTest, ChargesAnAttemptWhenTheHandlerStartsAndNotBefore) {
  Put("a");
  ASSERT_TRUE(Release(ReceiveOne().receipt).ok());
  const Message message = ReceiveOne();
  EXPECT_EQ(message.attempts, 0);
  EXPECT_EQ(*BeginAttempt(message.receipt), 1);
  EXPECT_TRUE(Release(message.receipt).ok());  // its receipt stays valid
  const Message again = ReceiveOne();
  EXPECT_EQ(again.attempts, 1);
  EXPECT_EQ(*BeginAttempt(again.receipt), 2);
}

TEST_P(QueueConformanceTest, DoesNotBeginOnALapsedLease) {
  Put("a");
  const Receipt receipt = ReceiveOne().receipt;
  Advance(kVisibility);
  EXPECT_TRUE(absl::IsFailedPrecondition(BeginAttempt(receipt).status()));
  EXPECT_EQ(ReceiveOne().attempts, 0);
}

TEST_P(QueueConformanceTest, DoesNotBeginOnAMessageThatNobodyHolds) {
  if (!traits().delayed_put) GTEST_SKIP();
  NewMessage delayed;
  delayed.body = "a";
  delayed.delay = absl::Seconds(5);
  EXPECT_TRUE(absl::IsFailedPrecondition(BeginAttempt(Put(delayed).receipt).status()));
  Advance(absl::Seconds(5));
  const auto released = Release(ReceiveOne().receipt, absl::Seconds(5));
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(BeginAttempt(released->receipt).status()));
  Advance(absl::Seconds(5));
  EXPECT_EQ(ReceiveOne().attempts, 0);
}

TEST_P(QueueConformanceTest, TellsThatAHolderDiedAtWork) {
  Put("a");
  const Message message = ReceiveOne();
  EXPECT_FALSE(message.interrupted);
  ASSERT_TRUE(BeginAttempt(message.receipt).ok());
  Advance(kVisibility);
  EXPECT_TRUE(ReceiveOne().interrupted);
}

TEST_P(QueueConformanceTest, SuspectsNothingWhenALeaseWasLostBeforeTheHandlerStarted) {
  Put("a");
  ReceiveOne();
  Advance(kVisibility);
  EXPECT_FALSE(ReceiveOne().interrupted);
}

TEST_P(QueueConformanceTest, SuspectsNothingWhenTheHolderEndedItsAttempt) {
  Put("a");
  const Message message = ReceiveOne();
  ASSERT_TRUE(BeginAttempt(message.receipt).ok());
  ASSERT_TRUE(Release(message.receipt, absl::Seconds(5)).ok());
  Advance(absl::Seconds(5));
  const Message again = ReceiveOne();
  EXPECT_FALSE(again.interrupted);
  EXPECT_EQ(again.attempts, 1);
}

TEST_P(QueueConformanceTest, KeepsTheSuspicionWhenTheNextHolderBeganNothing) {
  Put("a");
  ASSERT_TRUE(BeginAttempt(ReceiveOne().receipt).ok());
  Advance(kVisibility);
  const Message suspect = ReceiveOne();
  ASSERT_TRUE(Release(suspect.receipt).ok());
  EXPECT_TRUE(ReceiveOne().interrupted);
}

TEST_P(QueueConformanceTest, KeepsTheSuspicionThroughAnExtension) {
  Put("a");
  const Message message = ReceiveOne();
  ASSERT_TRUE(BeginAttempt(message.receipt).ok());
  UpdateRequest extend;
  extend.receipt = message.receipt;
  extend.visibility = kVisibility;
  ASSERT_TRUE(Update(extend).ok());
  Advance(kVisibility);
  EXPECT_TRUE(ReceiveOne().interrupted);
}

// Two holders lease alternate messages.
TEST_P(QueueConformanceTest, RemembersAttemptsThatBeganTogether) {
  constexpr int kMessages = 40;
  for (int i = 0; i < kMessages; ++i) Put(absl::StrCat(i));
  std::vector<Receipt> receipts[2];
  for (int i = 0; i < kMessages; ++i) receipts[i % 2].push_back(ReceiveOne().receipt);
  const Receipt ended = receipts[0].back();
  for (const std::vector<Receipt>& holder : receipts) {
    const auto charged = store_->BeginAttempt(queue_, holder);
    ASSERT_TRUE(charged.ok()) << charged.status();
    for (const absl::StatusOr<int>& attempts : *charged) EXPECT_EQ(*attempts, 1);
  }
  UpdateRequest defer;
  defer.receipt = ended;
  defer.attempt_ended = defer.refund_attempt = true;
  ASSERT_TRUE(Update(defer).ok());
  Advance(kVisibility);
  int interrupted = 0;
  for (int i = 0; i < kMessages; ++i) {
    const Message message = ReceiveOne();
    EXPECT_EQ(message.attempts, message.interrupted && !traits().begins_together ? 1 : 0);
    interrupted += message.interrupted ? 1 : 0;
  }
  EXPECT_EQ(interrupted, kMessages - 1) << "all but the one that was given back";
}

TEST_P(QueueConformanceTest, RefundsTheAttemptOfADeferredMessage) {
  Put("a");
  const Message message = ReceiveOne();
  ASSERT_TRUE(BeginAttempt(message.receipt).ok());
  UpdateRequest defer;
  defer.receipt = message.receipt;
  defer.attempt_ended = true;
  defer.refund_attempt = true;
  ASSERT_TRUE(Update(defer).ok());
  const Message again = ReceiveOne();
  EXPECT_EQ(again.attempts, 0);
  EXPECT_FALSE(again.interrupted);
}

TEST_P(QueueConformanceTest, RefundsOnlyWhatTheHolderWasCharged) {
  Put("a");
  const Message first = ReceiveOne();
  ASSERT_TRUE(BeginAttempt(first.receipt).ok());
  ASSERT_TRUE(Release(first.receipt).ok());
  UpdateRequest defer;
  defer.receipt = ReceiveOne().receipt;
  defer.attempt_ended = true;
  defer.refund_attempt = true;
  ASSERT_TRUE(Update(defer).ok());
  EXPECT_EQ(ReceiveOne().attempts, 1);
}

TEST_P(QueueConformanceTest, SetsAMessageAsideWithItsCause) {
  const PutResult put = Put("bad");
  Put("good");
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "divides by zero").ok());
  EXPECT_THAT(ReceiveBodies(), ElementsAre("good"));
  const auto poison = store_->ListPoison(queue_, "", 10);
  ASSERT_TRUE(poison.ok()) << poison.status();
  ASSERT_EQ(poison->size(), 1u);
  const PoisonMessage& message = poison->front();
  if (traits().keeps_ids) {
    EXPECT_EQ(message.message_id, put.message_id);
  }
  EXPECT_EQ(message.body, "bad");
  if (traits().exact_stats) {
    EXPECT_EQ(message.insertion_time, put.insertion_time);
  }
  EXPECT_EQ(message.cause.reason, "divides by zero");
  EXPECT_EQ(message.cause.attempts, 3);
  EXPECT_EQ(message.cause.holder, "processor-1");
  EXPECT_EQ(message.cause.time, clock_.Now());
}

TEST_P(QueueConformanceTest, AnswersNotFoundForAMessageThatBecamePoison) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  Put("bad");
  const Receipt receipt = ReceiveOne().receipt;
  ASSERT_TRUE(DeadLetter(receipt, "why").ok());
  EXPECT_TRUE(absl::IsNotFound(Delete(receipt)));
}

TEST_P(QueueConformanceTest, CutsAReasonThatIsTooLong) {
  Put("bad");
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, std::string(kMaxReasonBytes + 1, 'x')).ok());
  EXPECT_EQ(store_->ListPoison(queue_, "", 1)->front().cause.reason,
            std::string(kMaxReasonBytes, 'x'));
}

TEST_P(QueueConformanceTest, ListsPoisonOldestFirstPageByPage) {
  std::vector<std::string> bodies;
  for (int i = 0; i < 5; ++i) {
    bodies.push_back(std::string(1, static_cast<char>('a' + i)));
    Put(bodies.back());
  }
  std::vector<Message> messages = Receive(5);
  ASSERT_EQ(messages.size(), 5u);
  // The oldest is the one that was put first; without its id, the one that was given up first.
  if (traits().keeps_ids) std::reverse(messages.begin(), messages.end());
  for (const Message& message : messages) {
    ASSERT_TRUE(DeadLetter(message.receipt, "why").ok());
  }
  std::vector<std::string> listed;
  std::string after;
  while (true) {
    const auto page = store_->ListPoison(queue_, after, 2);
    ASSERT_TRUE(page.ok()) << page.status();
    if (page->empty()) break;
    for (const PoisonMessage& message : *page) listed.push_back(message.body);
    after = page->back().message_id;
  }
  EXPECT_EQ(listed, bodies);
}

TEST_P(QueueConformanceTest, ListsOnBehindPoisonThatIsGoneMeanwhile) {
  for (const char* body : {"a", "b", "c", "d", "e"}) {
    Put(body);
    ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  }
  const std::vector<PoisonMessage> page = store_->ListPoison(queue_, "", 3).value();
  ASSERT_EQ(page.size(), 3u);
  EXPECT_EQ(*store_->Redrive(queue_, {page[2].message_id}, 1), 1);
  EXPECT_EQ(*store_->DropPoison(queue_, {page[1].message_id}), 1);
  const auto next = store_->ListPoison(queue_, page[2].message_id, 3);
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_EQ(next->size(), 2u);
  EXPECT_EQ(next->front().body, "d");
  EXPECT_EQ(next->back().body, "e");
}

TEST_P(QueueConformanceTest, RefusesToListAfterAMessageThatWasNeverThere) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListPoison(queue_, "nonsense", 1).status()));
}

TEST_P(QueueConformanceTest, FindsPoisonByItsIdAndAsItWasReceived) {
  std::vector<PoisonName> names(4);
  std::vector<Message> received;
  for (const char* body : {"a", "b", "c"}) {
    Put(body);
    received.push_back(ReceiveOne());
    ASSERT_TRUE(DeadLetter(received.back().receipt, absl::StrCat("why ", body)).ok());
  }
  const std::string id = store_->ListPoison(queue_, "", 3)->at(1).message_id;
  names[0] = {"", received[2].position, received[2].insertion_time};
  names[1] = {id};
  names[2] = {"00000000-0000-4000-8000-000000000000"};
  names[3] = {"", received[0].position, received[0].insertion_time - absl::Seconds(1)};
  const auto find = [&] {
    std::vector<std::string> found;
    const auto answer = store_->FindPoison(queue_, names);
    for (const auto& message : *answer) {
      found.push_back(message.has_value() ? message->body + ": " + message->cause.reason : "");
    }
    return found;
  };
  EXPECT_THAT(find(), ElementsAre("c: why c", "b: why b", "", ""));
  EXPECT_EQ(*store_->Redrive(queue_, {id}, 1), 1);
  EXPECT_THAT(find(), ElementsAre("c: why c", "", "", ""));
  const Message again = ReceiveOne();
  ASSERT_TRUE(DeadLetter(again.receipt, "still").ok());
  names[1] = {"", again.position, again.insertion_time};
  EXPECT_THAT(find(), ElementsAre("c: why c", "b: still", "", ""));
  EXPECT_EQ(*store_->PurgePoison(queue_), 3);
  EXPECT_THAT(find(), ElementsAre("", "", "", ""));
  EXPECT_THAT(store_->FindPoison(queue_, {}).value(), IsEmpty());
}

TEST_P(QueueConformanceTest, RedrivesNamedMessagesTheOldestFirst) {
  for (const char* body : {"a", "b", "c"}) {
    Put(body);
    ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  }
  const std::vector<PoisonMessage> poison = store_->ListPoison(queue_, "", 3).value();
  EXPECT_EQ(*store_->Redrive(queue_, {poison[2].message_id, poison[0].message_id}, 2), 2);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "c"));
}

TEST_P(QueueConformanceTest, RedrivesANamedMessageAsNew) {
  const PutResult put = Put("bad");
  const Message message = ReceiveOne();
  ASSERT_TRUE(BeginAttempt(message.receipt).ok());
  ASSERT_TRUE(DeadLetter(message.receipt, "why").ok());
  const std::string id = store_->ListPoison(queue_, "", 1)->front().message_id;
  const std::string stranger = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(*store_->Redrive(queue_, {id, stranger, id}, 100), 1);
  EXPECT_THAT(PoisonBodies(), IsEmpty());
  const Message again = ReceiveOne();
  if (traits().keeps_ids) {
    EXPECT_EQ(again.message_id, put.message_id);
  }
  EXPECT_EQ(again.body, "bad");
  EXPECT_EQ(again.attempts, 0);
  EXPECT_EQ(again.dequeue_count, 1);
  EXPECT_FALSE(again.interrupted);
  EXPECT_TRUE(Delete(again.receipt).ok());
}

TEST_P(QueueConformanceTest, RedrivesTheOldestUpToANumber) {
  for (const char* body : {"a", "b", "c"}) {
    Put(body);
    ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  }
  EXPECT_EQ(*store_->Redrive(queue_, {}, 2), 2);
  EXPECT_THAT(PoisonBodies(), ElementsAre("c"));
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "b"));
}

TEST_P(QueueConformanceTest, GivesARedrivenMessageItsWholeLifeAgain) {
  if (!traits().per_message_ttl) GTEST_SKIP();
  NewMessage message;
  message.body = "a";
  message.ttl = absl::Minutes(5);
  Put(message);
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  Advance(absl::Hours(1));
  // Poison messages do not expire; a redriven message starts its whole lifetime again.
  EXPECT_EQ(*store_->Redrive(queue_, {}, 10), 1);
  Advance(absl::Minutes(4));
  EXPECT_THAT(PeekBodies(), ElementsAre("a"));
  Advance(absl::Minutes(1));
  EXPECT_THAT(PeekBodies(), IsEmpty());
}

TEST_P(QueueConformanceTest, PurgesPoisonAndNothingElse) {
  Put("bad");
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  Put("good");
  EXPECT_EQ(*store_->PurgePoison(queue_), 1);
  EXPECT_EQ(*store_->PurgePoison(queue_), 0);
  EXPECT_THAT(PoisonBodies(), IsEmpty());
  EXPECT_THAT(ReceiveBodies(), ElementsAre("good"));
}

TEST_P(QueueConformanceTest, DropsThePoisonThatIsNamed) {
  for (const char* body : {"a", "b", "c"}) {
    Put(body);
    ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  }
  const std::vector<PoisonMessage> poison = store_->ListPoison(queue_, "", 10).value();
  ASSERT_EQ(poison.size(), 3);
  const std::string id = poison[1].message_id;
  EXPECT_EQ(*store_->DropPoison(queue_, {}), 0) << "no name is not all";
  EXPECT_EQ(*store_->DropPoison(queue_, {id, id, "none"}), 1);
  EXPECT_EQ(*store_->DropPoison(queue_, {id}), 0);
  EXPECT_THAT(PoisonBodies(), ElementsAre("a", "c"));
  EXPECT_EQ(store_->Stats(queue_)->poison, 2);
  EXPECT_EQ(*store_->Redrive(queue_, {poison[2].message_id}, 1), 1);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("c"));
}

}  // namespace

bool LinkAttemptTests() { return true; }

}  // namespace muster::queue::conformance
