#include "muster/queue/jetstream/receipt.h"

#include "gtest/gtest.h"

namespace muster::queue::jetstream {
namespace {

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
  const auto read = ParseReceipt(kWork, ReceiptOfPut(kWork, 17));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->of_put);
  EXPECT_EQ(read->delivery.sequence, 17u);
}

TEST(ReceiptTest, IsGoodForItsQueueOnly) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(ParseReceipt({"acme", "other"}, ReceiptOfPut(kWork, 17)).status()));
}

}  // namespace
}  // namespace muster::queue::jetstream
