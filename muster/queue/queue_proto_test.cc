// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/queue_proto.h"

#include "gtest/gtest.h"

namespace muster::queue {
namespace {

const absl::Time kTime = absl::FromUnixMicros(1323435000000042);

TEST(QueueForms, CarryEveryCount) {
  QueueStats stats;
  stats.ready = 1;
  stats.in_flight = 2;
  stats.delayed = 3;
  stats.poison = 4;
  stats.oldest_age = absl::Milliseconds(1500);
  stats.total_in = 5;
  stats.total_out = 6;
  stats.total_expired = 7;
  stats.stale_receipts = 8;
  const v1::QueueStats proto = ToProto(stats);
  for (int i = 0; i < v1::QueueStats::descriptor()->field_count(); ++i) {
    const auto* const field = v1::QueueStats::descriptor()->field(i);
    EXPECT_TRUE(proto.GetReflection()->HasField(proto, field)) << field->name();
  }
  EXPECT_EQ(ToProto(FromProto(proto)).SerializeAsString(), proto.SerializeAsString());
  EXPECT_EQ(FromProto(proto).oldest_age, stats.oldest_age);
}

TEST(QueueForms, ShowAMessageWithItsWholeBodyOrABitOfIt) {
  Message message;
  message.message_id = "id";
  message.body = std::string("a\0b", 3);
  message.insertion_time = kTime;
  message.expiration_time = kTime + absl::Hours(1);
  message.dequeue_count = 2;
  message.attempts = 1;
  const Message whole = FromProto(ToProto(message, 0));
  EXPECT_EQ(whole.message_id, "id");
  EXPECT_EQ(whole.body, message.body);
  EXPECT_EQ(whole.insertion_time, kTime);
  EXPECT_EQ(whole.expiration_time, message.expiration_time);
  EXPECT_EQ(whole.dequeue_count, 2);
  EXPECT_EQ(whole.attempts, 1);
  EXPECT_EQ(ToProto(message, 1).body(), "a");
  EXPECT_EQ(ToProto(message, 1).body_bytes(), 3);
  EXPECT_EQ(ToProto(message, 100).body(), message.body);
}

TEST(QueueForms, LeaveTheTimeUnsetAtWhichAMessageNeverExpires) {
  Message message;
  message.expiration_time = absl::InfiniteFuture();
  EXPECT_FALSE(ToProto(message, 0).has_expires());
  EXPECT_EQ(FromProto(ToProto(message, 0)).expiration_time, absl::InfiniteFuture());
}

TEST(QueueForms, ShowWhyAMessageWasGivenUp) {
  const PoisonMessage message{"id", "body", kTime, {"it hung", 3, "worker-1", kTime}};
  const PoisonMessage back = FromProto(ToProto(message, 0));
  EXPECT_EQ(back.message_id, "id");
  EXPECT_EQ(back.body, "body");
  EXPECT_EQ(back.insertion_time, kTime);
  EXPECT_EQ(back.cause.reason, "it hung");
  EXPECT_EQ(back.cause.attempts, 3);
  EXPECT_EQ(back.cause.holder, "worker-1");
  EXPECT_EQ(back.cause.time, kTime);
}

TEST(QueueForms, KeepAMessageReadableWhateverItsCauseSays) {
  const PoisonMessage message{"id", "", kTime, {"caf\xC3\xA9 \xFF\xC3", 1, "", kTime}};
  EXPECT_EQ(ToProto(message, 0).cause().reason(), "caf\xC3\xA9 ??");
}

}  // namespace
}  // namespace muster::queue
