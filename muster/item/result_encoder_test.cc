// SPDX-License-Identifier: Apache-2.0

// Results as they are stored in output queues: golden forms, which no later change may alter.
#include "muster/item/result_encoder.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/item/golden_results.h"
#include "muster/item/work_item_codec.h"
#include "muster/listener/subscriber.h"
#include "muster/v1/item_result.pb.h"

namespace muster::item {
namespace {

WorkItem GoldenItem() {
  WorkItem item;
  item.identity = {5, "retail", "r1", "2", std::nullopt, {}, 0};
  item.index = 7;
  item.transactions = 3;
  item.content = base::Fingerprint("slice");
  return item;
}

TEST(ResultEncoderTest, WritesTheBytesThatEveryReleaseReads) {
  const std::vector<handler::GroupPartial> groups = {
      {"by_country", {{{"France", "2011-01"}, {*base::Decimal::TryParse("-12.50")}}}}};
  const auto aggregated = EncodeAggregated(GoldenItem(), {"2", "processor-1", 1},
                                           {groups, {{44, "price: no number"}}}, nullptr);
  ASSERT_TRUE(aggregated.ok()) << aggregated.status();
  EXPECT_EQ(absl::BytesToHexString(*aggregated), testing::kAggregated);
  EXPECT_EQ(
      absl::BytesToHexString(EncodeDeadLettered(GoldenItem(), {"2", "processor-1", 5}, "it died")),
      testing::kDeadLettered);
}

TEST(ResultEncoderTest, WritesRecordsIntoAnOutcomeOfTheirOwn) {
  const std::vector<handler::GroupPartial> groups = {
      {"by_country", {{{"France", "2011-01"}, {*base::Decimal::TryParse("-12.50")}}}}};
  ItemContribution contribution{groups, {{44, "price: no number"}}};
  contribution.outputs = std::vector<base::OutputRecord>{{44, {"a", "1.50"}}};
  const auto encoded =
      EncodeAggregated(GoldenItem(), {"2", "processor-1", 1}, contribution, nullptr);
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(absl::BytesToHexString(*encoded), testing::kWithOutputs);
}

// Field 14, behind those of the first release.
TEST(ResultEncoderTest, CarriesTheTraceOfItsBatch) {
  constexpr char kGoldenTrace[] = "721a004bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701";
  WorkItem item = GoldenItem();
  item.identity.trace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1, "a=b"};
  EXPECT_EQ(absl::BytesToHexString(EncodeDeadLettered(item, {"2", "processor-1", 5}, "it died")),
            absl::StrCat(testing::kDeadLettered, kGoldenTrace));
}

queue::NewMessage Message(uint64_t batch, uint32_t index, size_t padding = 0) {
  WorkItem item = GoldenItem();
  item.identity.batch = batch;
  item.index = index;
  queue::NewMessage message;
  message.body = EncodeDeadLettered(item, {"2", "w", 1}, std::string(padding, '.'));
  message.ttl = queue::kNeverExpires;
  return message;
}

// The indexes of the results in each message.
std::vector<std::vector<uint32_t>> Contents(const std::vector<queue::NewMessage>& messages) {
  std::vector<std::vector<uint32_t>> contents;
  for (const queue::NewMessage& message : messages) {
    v1::ItemResult whole, part;
    EXPECT_TRUE(whole.ParseFromString(message.body));
    std::vector<uint32_t>& indexes = contents.emplace_back();
    if (whole.together().empty()) indexes.push_back(whole.index());
    for (const std::string& body : whole.together()) {
      EXPECT_TRUE(part.ParseFromString(body));
      EXPECT_EQ(part.batch(), whole.batch());
      indexes.push_back(part.index());
    }
  }
  return contents;
}

using Indexes = std::vector<std::vector<uint32_t>>;

TEST(PackResultsTest, WritesTheBytesThatEveryReleaseReads) {
  queue::NewMessage aggregated, dead;
  aggregated.body = base::BytesFromHex(testing::kAggregated);
  dead.body = base::BytesFromHex(testing::kDeadLettered);
  const auto packed = PackResults({aggregated, dead});
  ASSERT_EQ(packed.size(), 1u);
  EXPECT_EQ(absl::BytesToHexString(packed[0].body),
            absl::StrCat("0805", "6a77", testing::kAggregated, "6a41", testing::kDeadLettered));
}

TEST(PackResultsTest, PutsSmallResultsOfOneBatchIntoOneMessage) {
  const auto packed = PackResults({Message(5, 1), Message(5, 2), Message(6, 3), Message(5, 4)});
  EXPECT_EQ(Contents(packed), (Indexes{{1, 2}, {3}, {4}}));
  EXPECT_EQ(packed[0].ttl, queue::kNeverExpires);
  EXPECT_EQ(packed[1].body, Message(6, 3).body) << "one by itself is as it was";
}

TEST(PackResultsTest, LetsLargeResultsTravelAlone) {
  const auto packed =
      PackResults({Message(5, 1), Message(5, 2, kSmallResultBytes), Message(5, 3), Message(5, 4)});
  EXPECT_EQ(Contents(packed), (Indexes{{2}, {1, 3, 4}}));
}

TEST(PackResultsTest, FillsNoMessageBeyondItsBounds) {
  std::vector<queue::NewMessage> many, heavy;
  for (uint32_t i = 0; i < kMaxTogether + 1; ++i) many.push_back(Message(5, i));
  for (uint32_t i = 0; i < 10; ++i) heavy.push_back(Message(5, i, kSmallResultBytes - 100));
  const Indexes parts = Contents(PackResults(many));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].size(), kMaxTogether);
  const auto packed = PackResults(heavy);
  EXPECT_EQ(packed.size(), 2u);
  for (const queue::NewMessage& message : packed) {
    EXPECT_LE(message.body.size(), kTogetherBytes + 10 * listener::kPackingBytes);
  }
}

TEST(PackResultsTest, LeavesAloneWhatIsNoResultOrIsNotJustPut) {
  queue::NewMessage garbage, named = Message(5, 1), late = Message(5, 2);
  garbage.body = "garbage";
  named.dedup_id = "once";
  late.delay = absl::Seconds(1);
  const auto packed = PackResults({garbage, {}, named, late});
  ASSERT_EQ(packed.size(), 4u);
  EXPECT_EQ(packed[0].body, "garbage");
  EXPECT_EQ(packed[2].dedup_id, "once");
  EXPECT_EQ(packed[3].delay, absl::Seconds(1));
  EXPECT_TRUE(PackResults({}).empty());
}

}  // namespace
}  // namespace muster::item
