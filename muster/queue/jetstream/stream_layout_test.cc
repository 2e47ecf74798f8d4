// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/stream_layout.h"

#include <set>

#include "gtest/gtest.h"

namespace muster::queue::jetstream {

namespace {

const queue::QueueId kQueue{"acme", "retail-in-0"};

TEST(NamesTest, NameStreamsAndSubjectsAfterTheQueue) {
  EXPECT_EQ(StreamOf(kQueue), "MUSTER_acme_retail-in-0");
  EXPECT_EQ(SubjectOf(kQueue), "muster.queue.acme.retail-in-0");
  EXPECT_EQ(AsideStreamOf(kQueue), "MUSTER-ASIDE_acme_retail-in-0");
  EXPECT_EQ(MetadataSubjectOf(kQueue), "muster.metadata.acme.retail-in-0");
  EXPECT_EQ(PoisonSubjectOf(kQueue, {7}), "muster.poison.acme.retail-in-0.7");
  EXPECT_EQ(PoisonSubjectOf(kQueue, {7, 0x1234}), "muster.poison.acme.retail-in-0.7-1234");
  EXPECT_EQ(PoisonSubjectsOf(kQueue), "muster.poison.acme.retail-in-0.*");
  EXPECT_EQ(AttemptSubjectOf(kQueue, 65536 + 5), "muster.attempts.acme.retail-in-0.5");
  EXPECT_EQ(AttemptPageSubjectOf(kQueue, 31), "muster.attempts.acme.retail-in-0.p0");
  EXPECT_EQ(AttemptPageSubjectOf(kQueue, 65536 + 32), "muster.attempts.acme.retail-in-0.p1");
  EXPECT_EQ(AliveSubjectOf("host.1"), "muster.alive.host=2E1");
  EXPECT_EQ(HeldSubjectOf("host.1", kQueue, 3), "muster.held.host=2E1.acme.retail-in-0.3");
  EXPECT_EQ(QueueOfHeld("muster.held.host=2E1.acme.retail-in-0.3"), kQueue);
  EXPECT_EQ(QueueOfHeld(GivenBackSubjectOf("host.1")), std::nullopt);
}

TEST(NamesTest, TellTheKeyOfAPoisonMessage) {
  for (const MessageKey key : {MessageKey{7}, MessageKey{7, 1795278064276749950}}) {
    EXPECT_EQ(PoisonKeyOf(PoisonSubjectOf(kQueue, key)), key);
  }
  for (const char* other : {"", "muster.poison.acme.work.x", "muster.poison.acme.work.7-x"}) {
    EXPECT_FALSE(PoisonKeyOf(other).has_value()) << other;
  }
}

TEST(NamesTest, TellTheQueueOfAStreamAndNoOther) {
  EXPECT_EQ(QueueOfStream(StreamOf(kQueue)), kQueue);
  for (const char* other : {"KV_muster", "MUSTER-ATTEMPTS", "MUSTER_", "", "orders"}) {
    EXPECT_FALSE(QueueOfStream(other).has_value()) << other;
  }
  EXPECT_FALSE(QueueOfStream(AsideStreamOf(kQueue)).has_value());
}

TEST(NamesTest, GiveEachMessageAGuidThatTellsItsSequence) {
  std::set<std::string> ids;
  for (const uint64_t sequence :
       {uint64_t{0}, uint64_t{1}, uint64_t{0xffffffffffff}, (uint64_t{1} << 60) - 1}) {
    const std::string id = MessageIdOf(kQueue, sequence);
    EXPECT_EQ(id.size(), 36u) << id;
    EXPECT_EQ(SequenceOf(kQueue, id), sequence) << id;
    EXPECT_TRUE(ids.insert(id).second);
  }
}

TEST(NamesTest, RefuseIdsOfOtherQueuesAndOtherText) {
  const std::string id = MessageIdOf(kQueue, 5);
  EXPECT_FALSE(SequenceOf({"acme", "retail-in-1"}, id).has_value());
  for (const std::string& text : {std::string(), std::string("nonsense"), id + "0", id.substr(1),
                                  std::string("00000000-0000-4000-8000-000000000000")}) {
    EXPECT_FALSE(SequenceOf(kQueue, text).has_value()) << text;
  }
}

const queue::QueueId kWork{"acme", "work"};

TEST(ReceiptTest, ReadsTheSubjectsOfAllServers) {
  for (const char* subject :
       {"$JS.ACK.MUSTER_acme_work.workers.3.17.40.1795278064276749950.9",
        "$JS.ACK.hub.ABCDEF.MUSTER_acme_work.workers.3.17.40.1795278064276749950.9",
        "$JS.ACK._.ABCDEF.MUSTER_acme_work.workers.3.17.40.1795278064276749950.9.random"}) {
    const auto delivery = ParseAckSubject(subject);
    ASSERT_TRUE(delivery.ok()) << delivery.status();
    EXPECT_EQ(delivery->deliveries, 3) << subject;
    EXPECT_EQ(delivery->sequence, 17u) << subject;
    EXPECT_EQ(absl::ToUnixNanos(delivery->stored), 1795278064276749950) << subject;
  }
}

TEST(ReceiptTest, RefusesOtherSubjects) {
  for (const char* subject : {"", "work", "$JS.ACK.a.b.1.2.3.4", "$JS.ACK.a.b.x.2.3.4.5",
                              "$JS.ACK.a.b.1.2.3.4.5.6", "$JS.API.a.b.1.2.3.4.5"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAckSubject(subject).status())) << subject;
  }
}

TEST(ReceiptTest, HoldsADelivery) {
  const Delivery delivery =
      ParseAckSubject("$JS.ACK.MUSTER_acme_work.workers.3.17.40.1795278064276749950.9").value();
  const queue::Receipt receipt = ReceiptOf(kWork, delivery);
  EXPECT_EQ(receipt.find_first_of("+/ ?&"), std::string::npos) << "it goes into URLs";
  const auto read = ParseReceipt(kWork, receipt);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->of_put);
  EXPECT_EQ(read->delivery.ack_subject, delivery.ack_subject);
  EXPECT_EQ(read->delivery.sequence, 17u);
}

TEST(ReceiptTest, HoldsAPut) {
  const auto read = ParseReceipt(kWork, ReceiptOfPut(kWork, 17, "body"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->of_put);
  EXPECT_EQ(read->body_sum, BodySumOf("body"));
  EXPECT_NE(read->body_sum, BodySumOf("other"));
  EXPECT_EQ(read->delivery.sequence, 17u);
}

TEST(ReceiptTest, IsGoodForItsQueueOnly) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseReceipt({"acme", "other"}, ReceiptOfPut(kWork, 17, "body")).status()));
}

// Anyone can make one whose sum is right, and what it holds is published to the server: one queue's
// receipts settled the messages of others, and gave orders to the server.
TEST(ReceiptTest, AcknowledgesNothingOfAnotherQueue) {
  const auto forged = [](const std::string& subject) {
    Delivery delivery;
    delivery.ack_subject = subject;
    return ParseReceipt(kWork, ReceiptOf(kWork, delivery)).status();
  };
  const std::string numbers = ".3.17.40.1795278064276749950.9";
  EXPECT_TRUE(forged("$JS.ACK.MUSTER_acme_work.workers" + numbers).ok());
  EXPECT_TRUE(forged("$JS.ACK.hub.ABCDEF.MUSTER_acme_work.workers" + numbers).ok());
  for (const std::string& subject : std::vector<std::string>{
           "$JS.ACK.MUSTER_acme_other.workers" + numbers,
           "$JS.ACK.hub.ABCDEF.MUSTER_acme_other.workers" + numbers,
           "$JS.ACK.MUSTER_acme_work.others" + numbers,
           "$JS.ACK.MUSTER_acme_work.workers.3.17.40.1795278064276749950.9 0",
           "$JS.ACK.MUSTER_acme_work.workers.3.17.40.1795278064276749950.9\r\n.",
           "$JS.ACK.MUSTER_acme_work.workers.3. 17.40.1795278064276749950.9",
           "$JS.API.STREAM.PURGE.MUSTER_acme_work" + numbers}) {
    EXPECT_TRUE(absl::IsInvalidArgument(forged(subject))) << subject;
  }
}

}  // namespace

}  // namespace muster::queue::jetstream
