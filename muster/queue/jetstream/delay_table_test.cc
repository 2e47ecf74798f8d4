// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/delay_table.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/queue/jetstream/stream_layout.h"

namespace muster::queue::jetstream {
namespace {

Delivery DeliveryOf(uint64_t sequence) {
  Delivery delivery;
  delivery.ack_subject = "ack";
  delivery.sequence = sequence;
  return delivery;
}

TEST(DelayTableTest, GivesWhatIsNotYetDue) {
  DelayTable table;
  table.Put(DeliveryOf(1), absl::Seconds(10), absl::ZeroDuration());
  table.Put(DeliveryOf(2), absl::Seconds(20), absl::ZeroDuration());
  ASSERT_EQ(table.After(absl::Seconds(10)).size(), 1u);
  EXPECT_EQ(table.After(absl::Seconds(10))[0].due, absl::Seconds(20));
  EXPECT_EQ(table.After(absl::Seconds(10))[0].ack_subject, "ack");
  table.Clear();
  EXPECT_TRUE(table.After(absl::ZeroDuration()).empty());
}

TEST(DelayTableTest, HoldsNoMoreThanItsBoundAndMakesRoomOfWhatIsDue) {
  DelayTable table;
  for (uint64_t i = 0; i < 2 * kMaxDelays; ++i) {
    table.Put(DeliveryOf(i), absl::Seconds(10), absl::ZeroDuration());
  }
  EXPECT_EQ(table.After(absl::ZeroDuration()).size(), kMaxDelays);
  table.Put(DeliveryOf(2 * kMaxDelays), absl::Seconds(20), absl::Seconds(10));
  EXPECT_EQ(table.After(absl::ZeroDuration()).size(), 1u);
}

}  // namespace
}  // namespace muster::queue::jetstream
