// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/rocksdb/codec.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace muster::stream::rocksdb {
namespace {

constexpr PartitionId kPartition{.stream = 258, .partition = 3};

std::string Hex(const std::string& bytes) { return absl::BytesToHexString(bytes); }

TEST(StreamCodecTest, OrdersKeysByStreamPartitionAndOffset) {
  EXPECT_EQ(Hex(EventKey(kPartition, 5)), "0000000000000102000000030000000000000005");
  EXPECT_EQ(Hex(PartitionKey(kPartition)), "70000000000000010200000003");
  EXPECT_LT(EventKey(kPartition, 255), EventKey(kPartition, 256));
  EXPECT_LT(EventKey(kPartition, INT64_MAX), EventKey({258, 4}, 1));
  EXPECT_LT(FirstEventKey(258), EventKey({258, 0}, 0));
  EXPECT_LT(EventKey({258, 1023}, INT64_MAX), FirstEventKey(259));
  EXPECT_EQ(OffsetIn(EventKey(kPartition, 5)), 5);
  EXPECT_EQ(OffsetIn("short"), std::nullopt);
  EXPECT_EQ(NameIn(StreamKey("a")), "a");
  EXPECT_EQ(NameIn(PartitionKey(kPartition)), std::nullopt);
  EXPECT_EQ(AddressIn(EventKey(kPartition, 5))->offset, 5);
  EXPECT_EQ(AddressIn(EventKey(kPartition, 5))->id.partition, kPartition.partition);
  EXPECT_EQ(PartitionIn(PartitionKey(kPartition))->stream, kPartition.stream);
  for (const char* const none : {"short", "this key is longer than one"}) {
    EXPECT_FALSE(AddressIn(none).has_value());
    EXPECT_FALSE(PartitionIn(none).has_value());
  }
}

TEST(StreamCodecTest, KeepsTheFormOfEachRecord) {
  EXPECT_EQ(Hex(EncodeStore({.next_stream = 258})), "01a63865cc9128b6ca0201000000000000");
  EXPECT_EQ(Hex(EncodeStream(
                {.number = 2,
                 .options = {.partitions = 16, .retention = absl::Seconds(1), .max_bytes = 7}},
                "na")),
            "01ea8375b18542e28b02000000000000001000000040420f00000000000700000000000000");
  EXPECT_EQ(
      Hex(EncodePartition(
          {.first = 3, .next = 5, .end_bytes = 100, .last_appended = absl::FromUnixSeconds(1)},
          "p")),
      "01fd055c5a74daf3f603000000000000000500000000000000640000000000000040420f0000000000");
  EXPECT_EQ(Hex(EncodeEvent(absl::FromUnixSeconds(1), 100, "abc", EventKey(kPartition, 5))),
            "013b9e859819d66f5d40420f00000000008000000000000000616263");
  EXPECT_EQ(Hex(EncodeLost(absl::FromUnixSeconds(1), 100, 7, EventKey(kPartition, 5))),
            "02485f643c2fc318f540420f000000000064000000000000000700000000000000");
}

TEST(StreamCodecTest, ReadsWhatItWrote) {
  const StreamRecord stream{
      2, {.partitions = 16, .retention = absl::InfiniteDuration(), .max_bytes = 7}};
  const auto decoded = DecodeStream(EncodeStream(stream, "na"), "na");
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->number, 2u);
  EXPECT_EQ(decoded->options, stream.options);
  EXPECT_EQ(DecodeStore(EncodeStore({258}))->next_stream, 258u);
  EXPECT_EQ(DecodePartition(EncodePartition({}, "p"), "p")->last_appended, absl::InfinitePast());
  const std::string key = EventKey(kPartition, 5);
  const std::string record = EncodeEvent(absl::FromUnixSeconds(1), 100, "abc", key);
  const auto event = DecodeEvent(record, key);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->appended, absl::FromUnixSeconds(1));
  EXPECT_EQ(event->end_bytes, 100 + static_cast<int64_t>(record.size()));
  EXPECT_EQ(event->content, "abc");
  EXPECT_EQ(event->lost_through, 0);
  const auto lost = DecodeEvent(EncodeLost(absl::FromUnixSeconds(1), 100, 7, key), key);
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->lost_through, 7);
  EXPECT_EQ(lost->end_bytes, 100);
  EXPECT_FALSE(DecodeEvent(EncodeLost(absl::FromUnixSeconds(1), 100, 4, key), key).has_value())
      << "it ends before it begins";
}

TEST(StreamCodecTest, NoticesEveryDamagedByteAndEveryCut) {
  const std::string key = EventKey(kPartition, 5);
  const std::string event = EncodeEvent(absl::FromUnixSeconds(1), 100, "abc", key);
  const std::string stream = EncodeStream({1, {}}, "na");
  const std::string partition = EncodePartition({}, "p");
  EXPECT_FALSE(DecodeEvent(event, EventKey(kPartition, 6)).has_value()) << "of another event";
  const auto all_refuse = [&](const std::string& e, const std::string& s, const std::string& p) {
    return !DecodeEvent(e, key).has_value() && !DecodeStream(s, "na").has_value() &&
           !DecodePartition(p, "p").has_value();
  };
  const auto damaged = [](std::string record, size_t i) {
    record[i % record.size()] = static_cast<char>(record[i % record.size()] ^ 0x20);
    return record;
  };
  for (size_t i = 0; i < stream.size() + partition.size(); ++i) {
    EXPECT_TRUE(all_refuse(damaged(event, i), damaged(stream, i), damaged(partition, i))) << i;
    EXPECT_TRUE(all_refuse(event.substr(0, i % event.size()), stream.substr(0, i % stream.size()),
                           partition.substr(0, i % partition.size())))
        << i;
  }
}

}  // namespace
}  // namespace muster::stream::rocksdb
