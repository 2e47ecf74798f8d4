// SPDX-License-Identifier: Apache-2.0

// Results of older and newer releases of muster.
#include "muster/item/result_decoder.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/item/golden_results.h"
#include "muster/item/work_item_codec.h"
#include "muster/v1/item_result.pb.h"

namespace muster::item {
namespace {

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

TEST(ResultDecoderTest, ReadsWhatTheFirstReleaseWrote) {
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

TEST(ResultDecoderTest, ReadsRecords) {
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

TEST(ResultDecoderTest, RefusesRecordsThatAreOutOfOrder) {
  v1::ItemResult result;
  ASSERT_TRUE(result.ParseFromString(base::BytesFromHex(testing::kWithOutputs)));
  result.mutable_aggregated_with_outputs()->add_outputs()->set_line(43);
  EXPECT_TRUE(absl::IsDataLoss(DecodeResult(result.SerializeAsString(), nullptr).status()));
}

TEST(ResultDecoderTest, ReadsTheTraceOfAResultAndCountsOneWithoutItAllTheSame) {
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

TEST(ResultDecoderTest, CountsAResultToWhichANewerMusterHasAddedFields) {
  const auto known = DecodeResult(base::BytesFromHex(testing::kAggregated), nullptr);
  const auto newer =
      DecodeResult(base::BytesFromHex(absl::StrCat(testing::kAggregated, kUnknownField)), nullptr);
  ASSERT_TRUE(newer.ok()) << newer.status();
  EXPECT_EQ(newer->item.result, known->item.result) << "it is the same result";
  EXPECT_EQ(newer->item.aggregated, known->item.aggregated);
}

TEST(ResultDecoderTest, TellsAnOutcomeThatOnlyANewerMusterKnowsFromDamage) {
  v1::ItemResult result;
  ASSERT_TRUE(result.ParseFromString(base::BytesFromHex(testing::kAggregated)));
  result.clear_outcome();
  EXPECT_TRUE(absl::IsDataLoss(DecodeResult(result.SerializeAsString(), nullptr).status()));
  EXPECT_TRUE(absl::IsUnimplemented(
      DecodeResult(result.SerializeAsString() + base::BytesFromHex(kUnknownField), nullptr)
          .status()));
}

TEST(ResultDecoderTest, ReadsResultsThatTravelTogether) {
  const auto results = DecodeResults(Together(5, {base::BytesFromHex(testing::kAggregated),
                                                  base::BytesFromHex(testing::kDeadLettered)}),
                                     nullptr);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ((*results)[0]->item.aggregated, 2);
  EXPECT_EQ((*results)[1]->item.cause, "it died");
  EXPECT_TRUE(FirstError(results).ok());
}

TEST(ResultDecoderTest, BlamesNoResultForItsNeighbour) {
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

TEST(ResultDecoderTest, ReadsNoMoreTogetherThanMayBeAndNoneOfAnotherBatch) {
  const std::string sound = base::BytesFromHex(testing::kAggregated);
  const std::vector<std::string> most(kMaxTogether, sound);
  EXPECT_TRUE(FirstError(DecodeResults(Together(5, most), nullptr)).ok());
  const std::vector<std::string> more(kMaxTogether + 1, sound);
  EXPECT_TRUE(absl::IsDataLoss(FirstError(DecodeResults(Together(5, more), nullptr))));
  EXPECT_TRUE(absl::IsDataLoss(FirstError(DecodeResults(Together(6, {sound}), nullptr))));
}

}  // namespace
}  // namespace muster::item
