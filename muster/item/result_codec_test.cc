// SPDX-License-Identifier: Apache-2.0

// Results as they are stored in output queues: golden forms, which no later change may alter, and
// those of older and newer releases of muster.
#include "muster/item/result_codec.h"

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

TEST(ResultCodecTest, WritesTheBytesThatEveryReleaseReads) {
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

TEST(ResultCodecTest, WritesRecordsIntoAnOutcomeOfTheirOwn) {
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
TEST(ResultCodecTest, CarriesTheTraceOfItsBatch) {
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

// Field 100, which this muster does not know.
constexpr char kUnknownField[] = "a206036e6577";

// Decodes a message with one result.
absl::StatusOr<DecodedResult> DecodeResult(absl::string_view body, blob::BlobStore* blobs) {
  auto results = DecodeResults(body, blobs);
  if (!results.ok()) return results.status();
  EXPECT_EQ(results->size(), 1u);
  return std::move(results->front());
}

std::string Together(uint64_t batch, const std::vector<std::string>& parts) {
  v1::ItemResult whole;
  whole.set_batch(batch);
  for (const std::string& part : parts) whole.add_together(part);
  return whole.SerializeAsString();
}

TEST(ResultCodecTest, ReadsWhatTheFirstReleaseWrote) {
  const auto aggregated = DecodeResult(base::BytesFromHex(testing::kAggregated), nullptr);
  ASSERT_TRUE(aggregated.ok()) << aggregated.status();
  const report::CountedItem& item = aggregated->item;
  EXPECT_EQ(item.batch, 5u);
  EXPECT_EQ(item.index, 7u);
  EXPECT_EQ(item.content, base::Fingerprint("slice"));
  EXPECT_EQ(item.handler_version, "2");
  EXPECT_EQ(item.worker, "processor-1");
  EXPECT_EQ(item.aggregated, 2);
  ASSERT_EQ(item.groups.size(), 1u);
  EXPECT_EQ(item.groups[0].rows.at(0).keys.at(1), "2011-01");
  EXPECT_EQ(item.groups[0].rows.at(0).measures.at(0).ToString(), "-12.50");
  EXPECT_EQ(item.rejections.at(0).reason, "price: no number");
  // The controller compares this fingerprint with later results of the same item, from any release.
  EXPECT_EQ(item.result.ToHex(), "a9bc1c7c7fd55e73c760f0f7fe9f5038");
  const auto dead = DecodeResult(base::BytesFromHex(testing::kDeadLettered), nullptr);
  ASSERT_TRUE(dead.ok()) << dead.status();
  EXPECT_EQ(dead->item.cause, "it died");
  EXPECT_EQ(dead->item.attempts, 5);
}

TEST(ResultCodecTest, ReadsRecords) {
  const auto result = DecodeResult(base::BytesFromHex(testing::kWithOutputs), nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->item.outputs.has_value());
  EXPECT_EQ(*result->item.outputs, (std::vector<base::OutputRecord>{{44, {"a", "1.50"}}}));
  EXPECT_EQ(result->item.rejections.size(), 1u);
  // Records are a part of what two results of an item must agree on.
  const auto plain = DecodeResult(base::BytesFromHex(testing::kAggregated), nullptr);
  EXPECT_EQ(plain->item.outputs, std::nullopt);
  EXPECT_NE(plain->item.result, result->item.result);
}

TEST(ResultCodecTest, RefusesRecordsThatAreOutOfOrder) {
  v1::ItemResult result;
  ASSERT_TRUE(result.ParseFromString(base::BytesFromHex(testing::kWithOutputs)));
  result.mutable_aggregated_with_outputs()->add_outputs()->set_line(43);
  EXPECT_TRUE(absl::IsDataLoss(DecodeResult(result.SerializeAsString(), nullptr).status()));
}

TEST(ResultCodecTest, ReadsTheTraceOfAResultAndCountsOneWithoutItAllTheSame) {
  constexpr char kTrace[] = "721a004bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701";
  constexpr char kDamagedTrace[] = "7203000102";
  const auto traced =
      DecodeResult(base::BytesFromHex(absl::StrCat(testing::kDeadLettered, kTrace)), nullptr);
  ASSERT_TRUE(traced.ok()) << traced.status();
  ASSERT_TRUE(traced->trace.has_value());
  EXPECT_EQ(traced->trace->ToTraceparent(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  for (const char* trace : {"", kDamagedTrace}) {
    const auto plain =
        DecodeResult(base::BytesFromHex(absl::StrCat(testing::kDeadLettered, trace)), nullptr);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(plain->trace, std::nullopt);
  }
}

TEST(ResultCodecTest, CountsAResultToWhichANewerMusterHasAddedFields) {
  const auto known = DecodeResult(base::BytesFromHex(testing::kAggregated), nullptr);
  const auto newer =
      DecodeResult(base::BytesFromHex(absl::StrCat(testing::kAggregated, kUnknownField)), nullptr);
  ASSERT_TRUE(newer.ok()) << newer.status();
  EXPECT_EQ(newer->item.result, known->item.result) << "it is the same result";
  EXPECT_EQ(newer->item.aggregated, known->item.aggregated);
}

TEST(ResultCodecTest, TellsAnOutcomeThatOnlyANewerMusterKnowsFromDamage) {
  v1::ItemResult result;
  ASSERT_TRUE(result.ParseFromString(base::BytesFromHex(testing::kAggregated)));
  result.clear_outcome();
  EXPECT_TRUE(absl::IsDataLoss(DecodeResult(result.SerializeAsString(), nullptr).status()));
  EXPECT_TRUE(absl::IsUnimplemented(
      DecodeResult(result.SerializeAsString() + base::BytesFromHex(kUnknownField), nullptr)
          .status()));
}

TEST(ResultCodecTest, ReadsResultsThatTravelTogether) {
  const auto results = DecodeResults(Together(5, {base::BytesFromHex(testing::kAggregated),
                                                  base::BytesFromHex(testing::kDeadLettered)}),
                                     nullptr);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ((*results)[0]->item.aggregated, 2);
  EXPECT_EQ((*results)[1]->item.cause, "it died");
  EXPECT_TRUE(FirstError(results).ok());
}

TEST(ResultCodecTest, BlamesNoResultForItsNeighbour) {
  const std::string sound = base::BytesFromHex(testing::kAggregated);
  const auto results =
      DecodeResults(Together(5, {"garbage", sound, Together(5, {sound})}), nullptr);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 3u);
  EXPECT_TRUE(absl::IsDataLoss((*results)[0].status()));
  EXPECT_TRUE((*results)[1].ok());
  EXPECT_TRUE(absl::IsDataLoss((*results)[2].status())) << "none holds others in turn";
  EXPECT_TRUE(absl::IsDataLoss(FirstError(results)));
}

TEST(ResultCodecTest, ReadsNoMoreTogetherThanMayBeAndNoneOfAnotherBatch) {
  const std::string sound = base::BytesFromHex(testing::kAggregated);
  const std::vector<std::string> most(kMaxTogether, sound);
  EXPECT_TRUE(FirstError(DecodeResults(Together(5, most), nullptr)).ok());
  const std::vector<std::string> more(kMaxTogether + 1, sound);
  EXPECT_TRUE(absl::IsDataLoss(FirstError(DecodeResults(Together(5, more), nullptr))));
  EXPECT_TRUE(absl::IsDataLoss(FirstError(DecodeResults(Together(6, {sound}), nullptr))));
}

}  // namespace
}  // namespace muster::item
