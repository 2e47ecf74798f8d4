// SPDX-License-Identifier: Apache-2.0

// The content of a queue: order, lifetimes, bodies, dedup, metadata, statistics, limits (req.
// 6–15).
#include "gmock/gmock.h"
#include "muster/queue/limits.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

NewMessage WithId(const std::string& body, const std::string& dedup_id) {
  NewMessage message;
  message.body = body;
  message.dedup_id = dedup_id;
  return message;
}

NewMessage Delayed(const std::string& body, absl::Duration delay) {
  NewMessage message;
  message.body = body;
  message.delay = delay;
  return message;
}

NewMessage Living(const std::string& body, absl::Duration ttl) {
  NewMessage message;
  message.body = body;
  message.ttl = ttl;
  return message;
}

TEST_P(QueueConformanceTest, GivesMessagesInTheOrderOfTheirPuts) {
  std::vector<std::string> bodies;
  for (int i = 0; i < 40; ++i) {
    bodies.push_back(std::to_string(i));
    Put(bodies.back());
  }
  std::vector<std::string> received = ReceiveBodies(32);
  const std::vector<std::string> rest = ReceiveBodies(32);
  received.insert(received.end(), rest.begin(), rest.end());
  EXPECT_EQ(received, bodies);
}

TEST_P(QueueConformanceTest, OrdersByTheTimeOfBecomingVisibleFirst) {
  if (!traits().per_receive_visibility) GTEST_SKIP();
  Put("first");
  ReceiveOne(absl::Seconds(10));
  Advance(absl::Seconds(5));
  Put("second");
  Advance(absl::Seconds(5));
  EXPECT_THAT(ReceiveBodies(), ElementsAre("second", "first"));
}

TEST_P(QueueConformanceTest, HidesADelayedMessageUntilItsTime) {
  if (!traits().delayed_put) GTEST_SKIP();
  const PutResult put = Put(Delayed("late", absl::Seconds(10)));
  EXPECT_EQ(put.next_visible_time, clock_.Now() + absl::Seconds(10));
  Put("now");
  EXPECT_EQ(Stats().delayed, 1);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("now"));
  Advance(absl::Seconds(10));
  EXPECT_EQ(Stats().delayed, 0);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("late"));
}

TEST_P(QueueConformanceTest, ForgetsAMessageAfterItsLife) {
  if (!traits().per_message_ttl) GTEST_SKIP();
  const PutResult put = Put(Living("short", absl::Seconds(10)));
  EXPECT_EQ(put.expiration_time, clock_.Now() + absl::Seconds(10));
  Put("long");
  const Receipt receipt = ReceiveOne().receipt;
  Advance(absl::Seconds(10));
  EXPECT_THAT(PeekBodies(), ElementsAre("long"));
  EXPECT_TRUE(absl::IsNotFound(Delete(receipt)));
  const QueueStats stats = Stats();
  EXPECT_EQ(stats.stored(), 1);
  EXPECT_EQ(stats.total_expired, 1);
  EXPECT_EQ(stats.total_out, 0);
}

TEST_P(QueueConformanceTest, KeepsAMessageForEverWhenAsked) {
  if (!traits().per_message_ttl) GTEST_SKIP();
  EXPECT_EQ(Put(Living("a", kNeverExpires)).expiration_time, absl::InfiniteFuture());
  Advance(absl::Hours(24 * 365 * 50));
  const Message message = ReceiveOne();
  EXPECT_EQ(message.body, "a");
  EXPECT_EQ(message.expiration_time, absl::InfiniteFuture());
}

TEST_P(QueueConformanceTest, ExpiresMoreThanItCollectsAtOnce) {
  if (!traits().per_message_ttl) GTEST_SKIP();
  PutAll(std::vector<NewMessage>(1000, Living("x", absl::Seconds(1))));
  Advance(absl::Seconds(1));
  EXPECT_EQ(Stats().stored(), 0);
  Put("y");
  EXPECT_THAT(ReceiveBodies(), ElementsAre("y"));
  Restart();
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  EXPECT_EQ(Stats().total_expired, 1000);
}

TEST_P(QueueConformanceTest, KeepsAnyBytes) {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes.push_back(static_cast<char>(i));
  const std::vector<std::string> bodies = {"", "😀 naïve 𝔘", all_bytes, std::string(3, '\0'),
                                           std::string(traits().max_body_bytes, 'm')};
  for (const std::string& body : bodies) Put(body);
  EXPECT_THAT(PeekBodies(), ElementsAreArray(bodies));
  EXPECT_THAT(ReceiveBodies(), ElementsAreArray(bodies));
}

TEST_P(QueueConformanceTest, ShowsMessagesWithoutTakingThem) {
  Put("a");
  Put("b");
  const auto peeked = store_->Peek(queue_, 32);
  ASSERT_TRUE(peeked.ok()) << peeked.status();
  ASSERT_THAT(*peeked, SizeIs(2));
  EXPECT_EQ(peeked->front().receipt, "");
  EXPECT_EQ(peeked->front().dequeue_count, 0);
  EXPECT_THAT(PeekBodies(1), ElementsAre("a"));
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "b"));
  EXPECT_THAT(PeekBodies(), IsEmpty());
}

TEST_P(QueueConformanceTest, PutsARepeatedIdOnlyOnce) {
  if (!traits().dedup) GTEST_SKIP();
  const PutResult first = Put(WithId("a", "id-1"));
  EXPECT_FALSE(first.duplicate);
  const PutResult again = Put(WithId("a again", "id-1"));
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.message_id, first.message_id);
  EXPECT_THAT(again.receipt, AnyOf("", first.receipt));
  EXPECT_THAT(again.insertion_time, AnyOf(absl::Time(), first.insertion_time));
  EXPECT_THAT(again.next_visible_time, AnyOf(absl::Time(), first.next_visible_time));
  EXPECT_THAT(again.expiration_time, AnyOf(absl::Time(), first.expiration_time));
  EXPECT_FALSE(Put(WithId("b", "id-2")).duplicate);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "b"));
  EXPECT_EQ(Stats().total_in, 2);
}

TEST_P(QueueConformanceTest, PutsAnIdThatIsRepeatedWithinOneCallOnlyOnce) {
  if (!traits().dedup) GTEST_SKIP();
  const auto results = PutAll({WithId("a", "id"), WithId("b", "id"), WithId("c", "")});
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_FALSE(results[0].duplicate);
  EXPECT_TRUE(results[1].duplicate);
  EXPECT_EQ(results[1].message_id, results[0].message_id);
  EXPECT_FALSE(results[2].duplicate);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a", "c"));
}

TEST_P(QueueConformanceTest, RemembersAnIdForAWhileAfterItsMessageIsGone) {
  if (!traits().dedup || !traits().keeps_ids) GTEST_SKIP();
  Put(WithId("a", "id"));
  ASSERT_TRUE(Delete(ReceiveOne().receipt).ok());
  Advance(kDedupWindow - absl::Seconds(1));
  EXPECT_TRUE(Put(WithId("a", "id")).duplicate);
  Advance(absl::Seconds(1));
  EXPECT_FALSE(Put(WithId("a", "id")).duplicate);
}

TEST_P(QueueConformanceTest, RemembersAnIdAsLongAsItsMessageIsStored) {
  if (!traits().dedup || !traits().keeps_ids) GTEST_SKIP();
  Put(WithId("a", "id"));
  Advance(10 * kDedupWindow);
  EXPECT_TRUE(Put(WithId("a", "id")).duplicate);
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  EXPECT_TRUE(Put(WithId("a", "id")).duplicate);
}

TEST_P(QueueConformanceTest, RemembersIdsOverARestart) {
  if (!traits().dedup) GTEST_SKIP();
  Put(WithId("a", "id"));
  Restart();
  EXPECT_TRUE(Put(WithId("a", "id")).duplicate);
}

TEST_P(QueueConformanceTest, RemembersTheIdOfAStoredMessageOverARestartOfItsServer) {
  if (!traits().dedup) GTEST_SKIP();
  Put(WithId("a", "id"));
  RestartServer();
  EXPECT_TRUE(Put(WithId("a", "id")).duplicate);
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
}

// Of such an id two messages may have been put, and no third one.
TEST_P(QueueConformanceTest, MayForgetTheIdOfAMessageThatIsGoneWhenItsServerRestarts) {
  if (!traits().dedup) GTEST_SKIP();
  Put(WithId("a", "id"));
  ASSERT_TRUE(Delete(ReceiveOne().receipt).ok());
  EXPECT_TRUE(Put(WithId("a", "id")).duplicate);
  RestartServer();
  const bool is_known = Put(WithId("a", "id")).duplicate;
  if (traits().keeps_ids) {
    EXPECT_TRUE(is_known);
  }
  EXPECT_TRUE(Put(WithId("a", "id")).duplicate);
  EXPECT_THAT(ReceiveBodies(), SizeIs(is_known ? 0 : 1));
}

TEST_P(QueueConformanceTest, KeepsTheIdsOfTwoQueuesApart) {
  if (!traits().dedup) GTEST_SKIP();
  const QueueId other{"acme", "other"};
  ASSERT_TRUE(store_->CreateQueue(other, {}).ok());
  Put(WithId("a", "id"));
  const auto put = store_->Put(other, {WithId("a", "id")});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_FALSE(put->front().duplicate);
}

TEST_P(QueueConformanceTest, RemembersThousandsOfIds) {
  if (!traits().dedup || !traits().keeps_ids) GTEST_SKIP();
  const auto put_round = [&] {
    int duplicates = 0;
    for (int i = 0; i < 10; ++i) {
      std::vector<NewMessage> messages;
      for (int j = 0; j < 1000; ++j) messages.push_back(WithId("", std::to_string(1000 * i + j)));
      for (const PutResult& result : PutAll(std::move(messages))) duplicates += result.duplicate;
    }
    return duplicates;
  };
  EXPECT_EQ(put_round(), 0);
  EXPECT_EQ(put_round(), 10000);
  Advance(kDedupWindow);
  EXPECT_EQ(put_round(), 10000);
  ASSERT_TRUE(store_->Clear(queue_).ok());
  EXPECT_EQ(put_round(), 0);
}

TEST_P(QueueConformanceTest, ClearsAllButPoison) {
  Put("poison");
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  Put("leased");
  const Receipt receipt = ReceiveOne().receipt;
  Put(WithId("ready", "id"));
  ASSERT_TRUE(store_->Clear(queue_).ok());
  EXPECT_EQ(Stats().stored(), 0);
  if (traits().fenced_receipts) {
    EXPECT_TRUE(absl::IsNotFound(Delete(receipt)));
  }
  EXPECT_THAT(PoisonBodies(), ElementsAre("poison"));
  const std::string id = traits().keeps_ids ? "id" : "another";
  EXPECT_FALSE(Put(WithId("ready", id)).duplicate);  // its id was forgotten
  Restart();
  EXPECT_THAT(ReceiveBodies(), ElementsAre("ready"));
  EXPECT_THAT(PoisonBodies(), ElementsAre("poison"));
}

TEST_P(QueueConformanceTest, CreatesAQueueAgainOnlyWithTheSameMetadata) {
  const QueueId queue{"acme", "other"};
  EXPECT_TRUE(store_->CreateQueue(queue, {{"k", "v"}}).ok());
  EXPECT_TRUE(store_->CreateQueue(queue, {{"k", "v"}}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store_->CreateQueue(queue, {{"k", "w"}})));
}

// Clients send what they like: one writes a name in Latin-1.
TEST_P(QueueConformanceTest, KeepsTheBytesOfMetadata) {
  const Metadata metadata = {{"city", "Z\xfcrich"}, {"utf8", "Z\xc3\xbcrich"}, {"none", ""}};
  ASSERT_TRUE(store_->SetMetadata(queue_, metadata).ok());
  Restart();
  EXPECT_EQ(*store_->GetMetadata(queue_), metadata);
  const QueueId other{"acme", "bytes"};
  ASSERT_TRUE(store_->CreateQueue(other, metadata).ok());
  EXPECT_TRUE(store_->CreateQueue(other, metadata).ok()) << "it is the same";
}

TEST_P(QueueConformanceTest, ReplacesAllMetadata) {
  ASSERT_TRUE(store_->SetMetadata(queue_, {{"Case", "Kept"}, {"b", ""}}).ok());
  ASSERT_TRUE(store_->SetMetadata(queue_, {{"Case", "kept too"}}).ok());
  EXPECT_EQ(*store_->GetMetadata(queue_), (Metadata{{"Case", "kept too"}}));
  Restart();
  EXPECT_EQ(*store_->GetMetadata(queue_), (Metadata{{"Case", "kept too"}}));
}

TEST_P(QueueConformanceTest, ListsAnAccountsQueuesByName) {
  for (const char* name : {"in-1", "out", "in-0", "in-2"}) {
    ASSERT_TRUE(store_->CreateQueue({"acme", name}, {{"name", name}}).ok());
  }
  ASSERT_TRUE(store_->CreateQueue({"zeta", "in-3"}, {}).ok());
  const auto list = [&](const std::string& prefix, const std::string& after, int max) {
    std::vector<std::string> names;
    const auto infos = store_->ListQueues({"acme", prefix, after, max});
    EXPECT_TRUE(infos.ok()) << infos.status();
    for (const QueueInfo& info : *infos) names.push_back(info.id.name);
    return names;
  };
  EXPECT_THAT(list("", "", 100), ElementsAre("in-0", "in-1", "in-2", "out", "work"));
  EXPECT_THAT(list("in", "", 100), ElementsAre("in-0", "in-1", "in-2"));
  EXPECT_THAT(list("in", "", 2), ElementsAre("in-0", "in-1"));
  EXPECT_THAT(list("in", "in-1", 2), ElementsAre("in-2"));
  EXPECT_THAT(list("zz", "", 2), IsEmpty());
  EXPECT_EQ(store_->ListQueues({"acme", "out", "", 1})->front().metadata,
            (Metadata{{"name", "out"}}));
}

TEST_P(QueueConformanceTest, DeletesAQueueWithAllThatItHolds) {
  Put(WithId("a", "id"));
  Put("b");
  const PutResult c = Put("c");
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  ASSERT_TRUE(store_->DeleteQueue(queue_).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->DeleteQueue(queue_)));
  ASSERT_TRUE(store_->CreateQueue(queue_, {}).ok());
  EXPECT_EQ(Stats().stored(), 0);
  EXPECT_EQ(Stats().total_in, 0);
  EXPECT_THAT(PoisonBodies(), IsEmpty());
  EXPECT_FALSE(Delete(c.receipt).ok());
  EXPECT_FALSE(Put(WithId("a", "id")).duplicate);
  Restart();
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
}

TEST_P(QueueConformanceTest, AnswersNotFoundForAnUnknownQueue) {
  const QueueId no{"acme", "unknown"};
  const std::vector<Receipt> receipts = {"r"};
  EXPECT_TRUE(absl::IsNotFound(store_->DeleteQueue(no)));
  EXPECT_TRUE(absl::IsNotFound(store_->GetMetadata(no).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->SetMetadata(no, {})));
  EXPECT_TRUE(absl::IsNotFound(store_->Put(no, std::vector<NewMessage>(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Receive(no, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Peek(no, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->BeginAttempt(no, receipts).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Update(no, std::vector<UpdateRequest>(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Delete(no, receipts).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Clear(no)));
  EXPECT_TRUE(absl::IsNotFound(store_->DeadLetter(no, std::vector<DeadLetterRequest>(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->ListPoison(no, "", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->FindPoison(no, {{"a"}}).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Redrive(no, {}, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->PurgePoison(no).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->DropPoison(no, {"id"}).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Stats(no).status()));
}

TEST_P(QueueConformanceTest, RefusesWhatBreaksALimit) {
  const auto invalid = [](const absl::Status& status) { return absl::IsInvalidArgument(status); };
  const auto too_many = std::vector<Receipt>(kMaxSettle + 1, "r");
  EXPECT_TRUE(invalid(store_->CreateQueue({"acme", "a/b"}, {})));
  EXPECT_TRUE(invalid(store_->CreateQueue({"", "abc"}, {})));
  EXPECT_TRUE(invalid(store_->CreateQueue({"acme", "abc"}, {{"", "v"}})));
  EXPECT_TRUE(invalid(store_->SetMetadata(queue_, {{"k", std::string(kMaxMetadataBytes, 'v')}})));
  EXPECT_TRUE(invalid(store_->Receive(queue_, {0, kVisibility}).status()));
  EXPECT_TRUE(invalid(store_->Receive(queue_, {traits().max_receive + 1, kVisibility}).status()));
  EXPECT_TRUE(invalid(store_->Receive(queue_, {1, absl::ZeroDuration()}).status()));
  EXPECT_TRUE(invalid(store_->Receive(queue_, {1, kMaxVisibility * 2}).status()));
  EXPECT_TRUE(invalid(store_->Peek(queue_, 0).status()));
  EXPECT_TRUE(invalid(store_->Peek(queue_, traits().max_receive + 1).status()));
  EXPECT_TRUE(invalid(store_->Put(queue_, std::vector<NewMessage>(kMaxPutMessages + 1)).status()));
  EXPECT_TRUE(invalid(store_->Put(queue_, {Living("a", absl::ZeroDuration())}).status()));
  EXPECT_TRUE(invalid(store_->Put(queue_, {Delayed("a", kMaxDelay * 2)}).status()));
  EXPECT_TRUE(
      invalid(store_->Put(queue_, {WithId("a", std::string(kMaxDedupIdBytes + 1, 'i'))}).status()));
  EXPECT_TRUE(invalid(store_->Delete(queue_, too_many).status()));
  EXPECT_TRUE(invalid(store_->BeginAttempt(queue_, too_many).status()));
  EXPECT_TRUE(invalid(store_->Update(queue_, std::vector<UpdateRequest>(kMaxSettle + 1)).status()));
  EXPECT_TRUE(
      invalid(store_->DeadLetter(queue_, std::vector<DeadLetterRequest>(kMaxSettle + 1)).status()));
  EXPECT_TRUE(invalid(store_->ListPoison(queue_, "", 0).status()));
  EXPECT_TRUE(invalid(store_->ListQueues({"acme", "", "", 0}).status()));
  UpdateRequest endless;
  endless.receipt = Put("a").receipt;
  endless.visibility = kMaxVisibility * 2;
  EXPECT_TRUE(invalid(store_->Update(queue_, {endless}).status()));
}

TEST_P(QueueConformanceTest, PutsNothingWhenOneMessageOfTheCallBreaksALimit) {
  NewMessage large;
  large.body.assign(kMaxBodyBytes + 1, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Put(queue_, {NewMessage(), large}).status()));
  EXPECT_EQ(Stats().total_in, 0);
  EXPECT_THAT(PeekBodies(), IsEmpty());
}

TEST_P(QueueConformanceTest, CountsEveryMessageInOnePlace) {
  if (!traits().exact_stats) GTEST_SKIP();
  for (int i = 0; i < 6; ++i) Put("m");
  Advance(absl::Seconds(2));
  const auto messages = Receive(4);
  ASSERT_THAT(messages, SizeIs(4));
  ASSERT_TRUE(Delete(messages[0].receipt).ok());
  ASSERT_TRUE(DeadLetter(messages[1].receipt, "why").ok());
  ASSERT_TRUE(Release(messages[2].receipt, absl::Minutes(1)).ok());  // no holder works on it
  const QueueStats stats = Stats();
  EXPECT_EQ(stats.ready, 2);
  EXPECT_EQ(stats.in_flight, 1);
  EXPECT_EQ(stats.delayed, 1);
  EXPECT_EQ(stats.poison, 1);
  EXPECT_EQ(stats.stored(), 4);
  EXPECT_EQ(stats.total_in, 6);
  EXPECT_EQ(stats.total_out, 1);
  EXPECT_EQ(stats.oldest_age, absl::Seconds(2));
  Advance(absl::Minutes(1));
  EXPECT_EQ(Stats().ready, 4);
}

TEST_P(QueueConformanceTest, HasNoAgeWhenEmpty) {
  if (!traits().exact_stats) GTEST_SKIP();
  Put("a");
  Advance(absl::Seconds(9));
  EXPECT_EQ(Stats().oldest_age, absl::Seconds(9));
  ASSERT_TRUE(Delete(ReceiveOne().receipt).ok());
  EXPECT_EQ(Stats().oldest_age, absl::ZeroDuration());
}

}  // namespace

bool LinkContentTests() { return true; }

}  // namespace muster::queue::conformance
