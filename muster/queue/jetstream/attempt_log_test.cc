// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/attempt_log.h"

#include "gtest/gtest.h"

namespace muster::queue::jetstream {
namespace {

TEST(AttemptNoteTest, IsReadAsItWasWritten) {
  for (const bool ended : {false, true}) {
    for (const bool suspect : {false, true}) {
      const AttemptRecord record{17, 3, 2, ended, suspect};
      const auto read = DecodeAttemptRecord(Encode(record));
      ASSERT_TRUE(read.has_value()) << Encode(record);
      EXPECT_EQ(Encode(*read), Encode(record));
      EXPECT_EQ(read->sequence, 17u);
      EXPECT_EQ(read->deliveries, 3);
      EXPECT_EQ(read->attempts, 2);
      EXPECT_EQ(read->ended, ended);
      EXPECT_EQ(read->suspect, suspect);
    }
  }
}

// Stored on servers: must never change.
TEST(AttemptNoteTest, KeepsItsForm) {
  EXPECT_EQ(Encode({17, 3, 2, false, false}), "17 3 2 began");
  EXPECT_EQ(Encode({17, 3, 2, true, true}), "17 3 2 ended suspect");
  EXPECT_EQ(Encode({17, 3, 2, false, false, 0x1234}), "17 3 2 began stored:1234");
  EXPECT_EQ(Encode({17, 3, 2, true, true, 0x1234}), "17 3 2 ended suspect stored:1234");
  EXPECT_EQ(DecodeAttemptRecord("17 3 2 ended suspect stored:1234")->key(),
            (MessageKey{17, 0x1234}));
  EXPECT_EQ(DecodeAttemptRecord("17 3 2 began")->key(), (MessageKey{17, 0})) << "an older note";
  EXPECT_EQ(DecodeAttemptRecord("17 3 2 began")->attempts, 2);
  EXPECT_TRUE(DecodeAttemptRecord("17 3 2 ended suspect")->suspect);
}

// Likewise.
TEST(AttemptNoteTest, KeepsTheFormOfADelay) {
  AttemptRecord record{17, 3, 2, true};
  record.due_ns = 1'700'000'000'000'000'000;
  record.lease_ns = 30'000'000'000;
  EXPECT_EQ(Encode(record), "17 3 2 ended");
  EXPECT_EQ(EncodeDelay(record), "1700000000000000000 30000000000");
  AttemptRecord read;
  DecodeDelay("1700000000000000000 30000000000", &read);
  EXPECT_EQ(read.due_ns, record.due_ns);
  EXPECT_EQ(read.lease_ns, record.lease_ns);
  for (const char* text : {"", "17", "17 x", "17 3 2"}) {
    AttemptRecord none;
    DecodeDelay(text, &none);
    EXPECT_EQ(none.due_ns, 0) << text;
  }
}

TEST(AttemptNoteTest, IsNoOtherText) {
  for (const char* text : {"", "17 3 2", "17 3 2 maybe", "17 3 2 began well", "x 3 2 began",
                           "17 3 2 began suspect more", "17 -  2 ended",
                           "17 3 2 began stored:", "17 3 2 began stored:x", "stored:1"}) {
    EXPECT_FALSE(DecodeAttemptRecord(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace muster::queue::jetstream
