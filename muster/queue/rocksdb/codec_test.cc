// SPDX-License-Identifier: Apache-2.0

// The stored bytes: a golden record of each kind, which no later change may alter.
#include "muster/queue/rocksdb/codec.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"

namespace muster::queue::rocksdb {
namespace {

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

MessageState SomeState() {
  MessageState state;
  state.visible_us = 0x0102030405060708;
  state.expiry_us = kNeverUs;
  state.insertion_us = 1320969600000000;
  state.lease = (uint64_t{3} << 40) + 5;
  state.dequeue_count = 7;
  state.attempts = 2;
  state.flags = kHeld | kSuspect;
  return state;
}

TEST(CodecTest, KeepsItsGoldenKeys) {
  EXPECT_EQ(StoreKey(), "s");
  EXPECT_EQ(Hex(QueueKey(258)), "710000000000000102");
  EXPECT_EQ(Hex(CountersKey(1)), "630000000000000001");
  EXPECT_EQ(Hex(MessageKey(1, 258)), "00000000000000010000000000000102");
  EXPECT_EQ(Hex(PoisonBodyKey(1, 258)), "80000000000000010000000000000102");
  EXPECT_EQ(Hex(NoteKey(1, 258)), "6e00000000000000010000000000000102");
  EXPECT_EQ(Hex(DedupKey(1, "id")), "00000000000000016964");
}

TEST(CodecTest, ReadsTheDedupRecordsOfVersion1) {
  const std::string key = DedupKey(1, "id");
  const auto dedup =
      DecodeDedup(base::BytesFromHex("0125b0843bd5e37c8702010000000000000060c4336ab10400"), key);
  ASSERT_TRUE(dedup.has_value());
  EXPECT_EQ(dedup->seq, 258u);
  EXPECT_EQ(dedup->put_us, 1320969600000000);
  EXPECT_EQ(dedup->lease, 0u);
  EXPECT_EQ(dedup->expiry_us, kNeverUs);
}

TEST(CodecTest, KeepsItsGoldenRecords) {
  const std::string key = MessageKey(1, 258);
  EXPECT_EQ(
      Hex(EncodeState(SomeState(), key)),
      "01050200070000000807060504030201ffffffffffffff7f0060c4336ab104000500000000030000f37953a0");
  EXPECT_EQ(Hex(EncodeBodyHeader("body", key)), "01008a4cff1a4cae5f");
  EXPECT_EQ(Hex(EncodePoison({1, 2, 3, 4, "why", "me"}, key)),
            "01aed2aa6b95e7897b"
            "0100000000000000020000000000000003000000000000000400000003000000776879020000006d65");
  EXPECT_EQ(Hex(EncodeDedup({258, 1320969600000000, 5, 6, 7}, DedupKey(1, "id"))),
            "023b0fab46eb6249dc"
            "02010000000000000060c4336ab10400050000000000000006000000000000000700000000000000");
  const NoteRecord held{"sally", std::nullopt};
  EXPECT_EQ(Hex(EncodeNote(held, NoteKey(1, 258))), "01e6ea68ea365430f90500000073616c6c7900");
  const queue::Cause cause{"why", 4, "me", absl::FromUnixMicros(2)};
  const NoteRecord moved{"sally", NoteOrigin{{"acme", "in"}, "id", 1, cause}};
  EXPECT_EQ(Hex(EncodeNote(moved, NoteKey(1, 258))),
            "01cc756a5625cf576b0500000073616c6c790101000000000000000200000000000000040000000400"
            "000061636d6502000000696e02000000696403000000776879020000006d65");
  EXPECT_EQ(Hex(EncodeCounters({5, 4, 3, 2, 259})),
            "018badf89992b45038"
            "05000000000000000400000000000000030000000000000002000000000000000301000000000000");
  EXPECT_EQ(Hex(EncodeQueue({{"acme", "in"}, {{"k", "v"}}, 258}, QueueKey(1))),
            "018da65c53b19d278b"
            "02010000000000000400000061636d6502000000696e01000000010000006b0100000076");
  EXPECT_EQ(Hex(EncodeStore({3, 0x0123456789abcdef, 2})),
            "01a04b4c09e8743fbe"
            "0300000000000000efcdab89674523010200000000000000");
}

TEST(CodecTest, ReadsBackWhatItWrote) {
  const std::string key = MessageKey(1, 258);
  const auto state = DecodeState(EncodeState(SomeState(), key), key);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->visible_us, SomeState().visible_us);
  EXPECT_EQ(state->expiry_us, SomeState().expiry_us);
  EXPECT_EQ(state->insertion_us, SomeState().insertion_us);
  EXPECT_EQ(state->lease, SomeState().lease);
  EXPECT_EQ(state->dequeue_count, SomeState().dequeue_count);
  EXPECT_EQ(state->attempts, SomeState().attempts);
  EXPECT_EQ(state->flags, SomeState().flags);

  std::string body = EncodeBodyHeader("body", key) + "body";
  ASSERT_TRUE(StripToBody(&body, key));
  EXPECT_EQ(body, "body");

  const auto poison = DecodePoison(EncodePoison({1, 2, 3, 4, "why", "me"}, key), key);
  ASSERT_TRUE(poison.has_value());
  EXPECT_EQ(poison->ttl_us, 2);
  EXPECT_EQ(poison->attempts, 4);
  EXPECT_EQ(poison->reason, "why");
  EXPECT_EQ(poison->holder, "me");

  const auto queue = DecodeQueue(EncodeQueue({{"a", "q"}, {{"k", ""}}, 9}, "key"), "key");
  ASSERT_TRUE(queue.has_value());
  EXPECT_EQ(queue->id.ToString(), "a/q");
  EXPECT_EQ(queue->metadata, (queue::Metadata{{"k", ""}}));
  EXPECT_EQ(queue->dedup_floor, 9u);
}

// The codec detects every flipped bit, every cut, and a record under another key.
TEST(CodecTest, NoticesAnyDamage) {
  const std::string key = MessageKey(1, 258), other = MessageKey(1, 259);
  const std::string state = EncodeState(SomeState(), key);
  const std::string poison = EncodePoison({1, 2, 3, 4, "why", "me"}, key);
  EXPECT_FALSE(DecodeState(state, other).has_value());
  EXPECT_FALSE(DecodePoison(poison, other).has_value());
  for (size_t bit = 0; bit < 8 * state.size(); ++bit) {
    std::string damaged = state;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeState(damaged, key).has_value()) << "bit " << bit;
  }
  for (size_t bit = 0; bit < 8 * poison.size(); ++bit) {
    std::string damaged = poison;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodePoison(damaged, key).has_value()) << "bit " << bit;
  }
  for (size_t size = 0; size < poison.size(); ++size) {
    EXPECT_FALSE(DecodePoison(absl::string_view(poison).substr(0, size), key).has_value()) << size;
  }
  EXPECT_FALSE(DecodeState("", key).has_value());
}

TEST(CodecTest, SalvagesTheBodyOfADamagedRecord) {
  EXPECT_EQ(SalvageBody(EncodeBodyHeader("body", "key") + "bodx"), "bodx");
  EXPECT_EQ(SalvageBody("cut"), "");
}

TEST(CodecTest, StopsReadingAtTheFirstMissingByte) {
  std::string bytes;
  AppendText(&bytes, "text");
  bytes.pop_back();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.TakeText(), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Take<uint8_t>(), 0);
}

constexpr uint64_t kSalt = 0x0123456789abcdef;

TEST(MessageIdTest, LooksLikeARandomGuidAndLeadsBack) {
  for (uint64_t seq : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 40, kMaxSequence}) {
    const std::string id = MessageIdOf(kSalt, 7, seq);
    ASSERT_EQ(id.size(), 36u) << id;
    EXPECT_EQ(id[14], '4') << id;
    EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos) << id;
    EXPECT_EQ(SequenceOf(kSalt, 7, id), seq);
  }
  EXPECT_EQ(SequenceOf(kSalt, kMaxQueueNumber, MessageIdOf(kSalt, kMaxQueueNumber, 1)), 1u);
}

TEST(MessageIdTest, IsRefusedByAnotherQueueOrStore) {
  const std::string id = MessageIdOf(kSalt, 7, 1);
  EXPECT_EQ(SequenceOf(kSalt, 8, id), std::nullopt);
  EXPECT_EQ(SequenceOf(kSalt + 1, 7, id), std::nullopt);
  EXPECT_EQ(SequenceOf(kSalt, 7, ""), std::nullopt);
  EXPECT_EQ(SequenceOf(kSalt, 7, std::string(36, '-')), std::nullopt);
}

TEST(ReceiptTest, LeadsBackToTheLease) {
  const queue::Receipt receipt = EncodeReceipt(kSalt, {258, (uint64_t{3} << 40) + 5});
  EXPECT_EQ(receipt.size(), 28u);
  const auto parts = DecodeReceipt(kSalt, receipt);
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->seq, 258u);
  EXPECT_EQ(parts->lease, (uint64_t{3} << 40) + 5);
  EXPECT_FALSE(DecodeReceipt(kSalt + 1, receipt).has_value());
  EXPECT_FALSE(DecodeReceipt(kSalt, receipt.substr(1)).has_value());
}

}  // namespace
}  // namespace muster::queue::rocksdb
