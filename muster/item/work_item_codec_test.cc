// SPDX-License-Identifier: Apache-2.0
#include "muster/item/work_item_codec.h"

#include <limits>
#include <map>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/v1/work_item.pb.h"

namespace muster::item {
namespace {

using ::testing::HasSubstr;

class MapBlobs final : public blob::BlobStore {
 public:
  absl::Status Put(absl::string_view name, absl::string_view data) override {
    blobs[std::string(name)] = std::string(data);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(absl::string_view name) override {
    const auto it = blobs.find(std::string(name));
    if (it == blobs.end()) return absl::NotFoundError("no such blob");
    return it->second;
  }
  absl::Status Delete(absl::string_view name) override {
    blobs.erase(std::string(name));
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<blob::BlobScan>> Scan() override {
    return absl::UnimplementedError("nobody scans here");
  }
  std::map<std::string, std::string> blobs;
};

TEST(BlobOwnerTest, IsReadFromTheNameOfAnItemAndOfAResult) {
  EXPECT_EQ(OwnerOfBlob(BlobName(17, 42)), (BlobOwner{17, "", 42, false}));
  EXPECT_EQ(OwnerOfBlob(BlobName(17, 42, "ab")), (BlobOwner{17, "ab", 42, false}));
  EXPECT_EQ(OwnerOfBlob("batch-17-item-42-result-3-0123456789abcdef"),
            (BlobOwner{17, "", 42, true}));
  for (const char* name : {"", "batch-17", "batch-17-item-", "batch-17-item-4294967296",
                           "batch-x-item-1", "batch-17-item-42-copy", "other-17-item-42"}) {
    EXPECT_EQ(OwnerOfBlob(name), std::nullopt) << name;
  }
}

TEST(OrderKeyTest, IsTheFieldOrItsBeginningWithItsHash) {
  const std::string longer(1000, 'x');
  EXPECT_EQ(OrderKeyOf("a"), "a");
  EXPECT_EQ(OrderKeyOf(longer).size(), kMaxOrderKeyBytes);
  EXPECT_EQ(OrderKeyOf(longer), OrderKeyOf(longer));
  EXPECT_NE(OrderKeyOf(longer), OrderKeyOf(longer + "y"));
}

// A change here would break the order of what waits in queues.
TEST(OrderKeyTest, GoesIntoThePartitionThatEveryReleaseTakes) {
  EXPECT_EQ(PartitionOf("account-17", 1), 0);
  EXPECT_EQ(PartitionOf("account-17", 64), 9);
  EXPECT_EQ(PartitionOf("", 64), 24);
}

class WorkItemCodecTest : public ::testing::Test {
 protected:
  std::string Encode(absl::string_view slice) {
    ledger::ItemBoundary item;
    item.offset = 10;
    item.length = slice.size();
    item.first_line = 42;
    item.transactions = 3;
    item.content = base::Fingerprint(slice);
    auto body = encoder_.Encode(7, item, slice);
    EXPECT_TRUE(body.ok()) << body.status();
    return *body;
  }

  // As an item of a job with order_by.
  std::string EncodeOrdered(absl::string_view slice, const OrderedRecords& records) {
    ledger::ItemBoundary item;
    item.length = slice.size();
    item.first_line = records.lines.front();
    item.transactions = static_cast<uint32_t>(records.lines.size());
    item.content = base::Fingerprint(slice);
    auto body = encoder_.EncodeOrdered(7, item, slice, records);
    EXPECT_TRUE(body.ok()) << body.status();
    return *body;
  }

  static std::string Noise(size_t bytes) {
    std::mt19937_64 random(1);
    std::string noise(bytes, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    return noise;
  }

  MapBlobs blobs_;
  WorkItemEncoder encoder_{
      {5, "retail", "rev", "1", absl::FromUnixMillis(1500), {3, 0}, 8}, 1 << 20, &blobs_};
};

TEST_F(WorkItemCodecTest, CarriesSliceAndIdentity) {
  const std::string slice = "a,b\na,b\na,b\n";
  const auto item = DecodeWorkItem(Encode(slice), &blobs_);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->slice, slice);
  EXPECT_EQ(item->identity.batch, 5u);
  EXPECT_EQ(item->identity.job, "retail");
  EXPECT_EQ(item->identity.job_revision, "rev");
  EXPECT_EQ(item->identity.handler_version, "1");
  EXPECT_EQ(item->identity.deadline, absl::FromUnixMillis(1500));
  EXPECT_THAT(item->identity.positions, ::testing::ElementsAre(3, 0));
  EXPECT_EQ(item->identity.header_fields, 8);
  EXPECT_EQ(item->index, 7u);
  EXPECT_EQ(item->first_line, 42);
  EXPECT_EQ(item->transactions, 3u);
  EXPECT_EQ(item->content, base::Fingerprint(slice));
  EXPECT_FALSE(item->oversized_bytes.has_value());
}

// Stored in queues: must never change.
constexpr char kGoldenItem[] =
    "080510071a0672657461696c22037265762a0131302a38034210e723fcfe37fdc4f3ae41de5041dda5ec4801500c5a"
    "0c612c620a632c640a652c660a720808011080cab5ee017a060a0203001008";
constexpr char kGoldenOversized[] =
    "08051a0672657461696c22037265762a0131300938014210000000000000000000000000000000006a090880808032"
    "10808040720808011080cab5ee017a060a0203001008";
// An LZ4 block, and a claim check.
constexpr char kGoldenCompressed[] =
    "080510071a0672657461696c22037265762a0131302a38034210add9998d55ed3962e18dc405a95cc094480250645a"
    "0b1f7801004b507878787878720808011080cab5ee017a060a0203001008";
constexpr char kGoldenClaimCheck[] =
    "080510071a0672657461696c22037265762a0131302a38034210e723fcfe37fdc4f3ae41de5041dda5ec4801500c62"
    "0e62617463682d352d6974656d2d37720808011080cab5ee017a060a0203001008";
// A field that this muster does not know, number 100.
constexpr char kNewerField[] = "a206036e6577";

TEST_F(WorkItemCodecTest, WritesTheBytesThatEveryReleaseReads) {
  EXPECT_EQ(absl::BytesToHexString(Encode("a,b\nc,d\ne,f\n")), kGoldenItem);
  ledger::ItemBoundary oversized;
  oversized.length = 100 << 20;
  oversized.first_line = 9;
  oversized.transactions = 1;
  oversized.oversized = true;
  EXPECT_EQ(absl::BytesToHexString(*encoder_.Encode(0, oversized, "")), kGoldenOversized);
}

TEST_F(WorkItemCodecTest, ReadsWhatTheFirstReleaseWrote) {
  const auto item = DecodeWorkItem(base::BytesFromHex(kGoldenItem), &blobs_);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->slice, "a,b\nc,d\ne,f\n");
  EXPECT_EQ(item->identity.job_revision, "rev");
  EXPECT_EQ(DecodeWorkItem(base::BytesFromHex(kGoldenOversized), &blobs_)->limit_bytes, 1u << 20);
  EXPECT_EQ(DecodeWorkItem(base::BytesFromHex(kGoldenCompressed), &blobs_)->slice,
            std::string(100, 'x'));
  blobs_.blobs["batch-5-item-7"] = "a,b\nc,d\ne,f\n";
  EXPECT_EQ(DecodeWorkItem(base::BytesFromHex(kGoldenClaimCheck), &blobs_)->slice,
            "a,b\nc,d\ne,f\n");
}

// Of 5,000 bytes, by reference, of the data directory "ab".
constexpr char kGoldenReference[] =
    "080510071a0672657461696c22037265762a0131302a38034210c40b706e6ba9af508d8567cbc9ee3d905088277208"
    "08011080cab5ee017a060a02030010089201040a026162";

TEST_F(WorkItemCodecTest, CarriesALongSliceByReferenceWhereItsJobSaysSo) {
  BatchIdentity identity = DecodeWorkItem(Encode("a,b\n"), &blobs_)->identity;
  identity.owner = "ab";
  WorkItemEncoder encoder(identity, 1 << 20, &blobs_, Carriage::kByReference);
  const std::string slice(5000, 'x');
  const ledger::ItemBoundary item{10, slice.size(), 42, 3, base::Fingerprint(slice), false};
  EXPECT_FALSE(encoder.NeedsSlice(item));
  const std::string body = *encoder.Encode(7, item, "");
  EXPECT_EQ(absl::BytesToHexString(body), kGoldenReference);
  const auto decoded = DecodeWorkItem(body, &blobs_);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(decoded->by_reference);
  EXPECT_EQ(decoded->slice, "");
  EXPECT_EQ(decoded->slice_bytes, 5000u);
  EXPECT_EQ(decoded->content, base::Fingerprint(slice));
  EXPECT_EQ(decoded->identity.owner, "ab");
}

TEST_F(WorkItemCodecTest, CarriesAShortSliceInlineInAnyCase) {
  WorkItemEncoder encoder(DecodeWorkItem(Encode("a,b\n"), &blobs_)->identity, 1 << 20, &blobs_,
                          Carriage::kByReference);
  const std::string slice(kShortSliceBytes, 'x');
  const ledger::ItemBoundary item{10, slice.size(), 42, 3, base::Fingerprint(slice), false};
  EXPECT_TRUE(encoder.NeedsSlice(item));
  EXPECT_EQ(DecodeWorkItem(*encoder.Encode(7, item, slice), &blobs_)->slice, slice);
}

TEST_F(WorkItemCodecTest, CarriesTheTraceOfItsBatchInFewBytes) {
  constexpr char kGoldenTrace[] =
      "82011a004bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b7018a0103613d62";
  const std::string slice = "a,b\nc,d\ne,f\n";
  BatchIdentity traced = DecodeWorkItem(Encode(slice), &blobs_)->identity;
  traced.trace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1, "a=b"};
  ledger::ItemBoundary item{10, slice.size(), 42, 3, base::Fingerprint(slice), false};
  const std::string body = *WorkItemEncoder(traced, 1 << 20, &blobs_).Encode(7, item, slice);
  EXPECT_EQ(absl::BytesToHexString(body), absl::StrCat(kGoldenItem, kGoldenTrace));
  EXPECT_EQ(DecodeWorkItem(body, &blobs_)->identity.trace, traced.trace);
  EXPECT_EQ(DecodeWorkItemHeader(body)->identity.trace, traced.trace);
  EXPECT_LE(body.size() - Encode(slice).size(), 35u) << "29, and what the submitter sent with it";
  EXPECT_EQ(DecodeWorkItem(Encode(slice), &blobs_)->identity.trace, std::nullopt);
}

TEST_F(WorkItemCodecTest, WorksOnAnItemWhoseTraceCannotBeRead) {
  v1::WorkItem item;
  ASSERT_TRUE(item.ParseFromString(base::BytesFromHex(kGoldenItem)));
  for (const std::string& trace : {std::string("x"), std::string(26, '\0'), std::string(26, 'x')}) {
    item.set_trace_context(trace);
    const auto decoded = DecodeWorkItem(item.SerializeAsString(), &blobs_);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->identity.trace, std::nullopt);
  }
}

TEST_F(WorkItemCodecTest, ReadsAnItemToWhichANewerMusterHasAddedFields) {
  const auto item =
      DecodeWorkItem(base::BytesFromHex(absl::StrCat(kGoldenItem, kNewerField)), &blobs_);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->slice, "a,b\nc,d\ne,f\n");
}

TEST_F(WorkItemCodecTest, TellsAFormThatOnlyANewerMusterReadsFromDamage) {
  v1::WorkItem item;
  ASSERT_TRUE(item.ParseFromString(base::BytesFromHex(kGoldenItem)));
  v1::WorkItem repacked = item, elsewhere = item;
  repacked.set_compression(static_cast<v1::Compression>(3));
  elsewhere.clear_payload();
  EXPECT_TRUE(absl::IsDataLoss(DecodeWorkItem(elsewhere.SerializeAsString(), &blobs_).status()));
  for (const std::string& body :
       {repacked.SerializeAsString(),
        elsewhere.SerializeAsString() + base::BytesFromHex(kNewerField)}) {
    EXPECT_TRUE(absl::IsUnimplemented(DecodeWorkItem(body, &blobs_).status()));
    EXPECT_EQ(DecodeWorkItemHeader(body)->identity.batch, 5u);
  }
}

TEST_F(WorkItemCodecTest, CompressesWhatPaysAndLeavesTheRest) {
  EXPECT_LT(Encode(std::string(10'000, 'x')).size(), 500u);
  const std::string noise = Noise(10'000);
  EXPECT_EQ(DecodeWorkItem(Encode(noise), &blobs_)->slice, noise);
}

TEST_F(WorkItemCodecTest, ClaimChecksALargePayload) {
  const std::string noise = Noise(kInlinePayloadBytes + 1);
  const std::string body = Encode(noise);
  EXPECT_LT(body.size(), 500u);
  EXPECT_EQ(blobs_.blobs.count(BlobName(5, 7)), 1u);
  EXPECT_EQ(BlobName(5, 7), "batch-5-item-7") << "as an older muster named it";
  EXPECT_EQ(BlobName(5, 7, "ab"), "batch-5-of-ab-item-7");
  EXPECT_EQ(DecodeWorkItem(body, &blobs_)->slice, noise);
}

// As retention of earlier releases left the blobs of dead letters.
TEST_F(WorkItemCodecTest, ReadsABlobThatIsNotCompressedThoughTheMessageSaysSo) {
  const std::string noise = Noise(kInlinePayloadBytes + 1) + std::string(100'000, 'x');
  const std::string body = Encode(noise);
  ASSERT_LT(blobs_.blobs.at(BlobName(5, 7)).size(), noise.size());
  blobs_.blobs[BlobName(5, 7)] = noise;
  EXPECT_EQ(DecodeWorkItem(body, &blobs_)->slice, noise);
  blobs_.blobs[BlobName(5, 7)] = noise + "x";
  EXPECT_TRUE(absl::IsDataLoss(DecodeWorkItem(body, &blobs_).status()));
}

TEST_F(WorkItemCodecTest, SaysWhichBlobIsGone) {
  const std::string body = Encode(Noise(kInlinePayloadBytes + 1));
  blobs_.blobs.clear();
  const absl::Status status = DecodeWorkItem(body, &blobs_).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("5/7"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(BlobName(5, 7)));
}

TEST_F(WorkItemCodecTest, AnOversizedRecordCarriesOnlyItsSize) {
  ledger::ItemBoundary item;
  item.length = 100 << 20;
  item.first_line = 9;
  item.transactions = 1;
  item.oversized = true;
  const auto body = encoder_.Encode(0, item, "");
  ASSERT_TRUE(body.ok());
  const auto decoded = DecodeWorkItem(*body, &blobs_);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->oversized_bytes, uint64_t{100} << 20);
  EXPECT_EQ(decoded->limit_bytes, uint64_t{1} << 20);
}

TEST_F(WorkItemCodecTest, RefusesEverySingleBitFlipOrKeepsTheContent) {
  const std::string slice = "12,abc\n13,def\n14,ghi\n";
  const std::string body = Encode(slice);
  for (size_t bit = 0; bit < body.size() * 8; ++bit) {
    std::string damaged = body;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto item = DecodeWorkItem(damaged, &blobs_);
    if (item.ok() && !item->oversized_bytes.has_value()) {
      EXPECT_EQ(item->slice, slice) << "bit " << bit;
    }
  }
}

TEST_F(WorkItemCodecTest, RefusesASliceThatClaimsToBeHuge) {
  v1::WorkItem item;
  item.set_batch(1);
  item.set_transactions(1);
  item.set_content_hash(std::string(16, 'h'));
  item.set_compression(v1::COMPRESSION_LZ4);
  item.set_raw_bytes(uint64_t{1} << 60);
  item.set_inline_("x");
  EXPECT_TRUE(absl::IsDataLoss(DecodeWorkItem(item.SerializeAsString(), &blobs_).status()));
}

// The parser counted on from there, beyond the largest number.
TEST_F(WorkItemCodecTest, RefusesLinesThatNoInputHas) {
  v1::WorkItem message;
  ASSERT_TRUE(message.ParseFromString(Encode("1\n2\n3\n")));
  for (const int64_t line : {std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
    message.set_first_line(line);
    const absl::Status refused = DecodeWorkItem(message.SerializeAsString(), &blobs_).status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("no input has so many lines"));
  }
}

TEST_F(WorkItemCodecTest, RefusesFieldsThatNoRecordHas) {
  const auto decode = [&](uint32_t position, uint32_t header_fields) {
    v1::WorkItem item;
    EXPECT_TRUE(item.ParseFromString(Encode("a,b\n")));
    item.mutable_csv()->set_positions(1, position);
    item.mutable_csv()->set_header_fields(header_fields);
    return DecodeWorkItem(item.SerializeAsString(), &blobs_).status();
  };
  EXPECT_TRUE(decode(7, 8).ok());
  EXPECT_TRUE(absl::IsDataLoss(decode(8, 8)));
  EXPECT_TRUE(decode(kMaxCsvFields - 1, 0).ok());
  EXPECT_TRUE(absl::IsDataLoss(decode(kMaxCsvFields, 0)));
  EXPECT_TRUE(absl::IsDataLoss(decode(uint32_t{1} << 31, 0)));
  EXPECT_TRUE(absl::IsDataLoss(decode(0, kMaxCsvFields + 1)));
}

TEST_F(WorkItemCodecTest, TheHeaderIsReadableWithoutTheBlob) {
  const std::string body = Encode(Noise(kInlinePayloadBytes + 1));
  blobs_.blobs.clear();
  const auto header = DecodeWorkItemHeader(body);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->index, 7u);
  EXPECT_EQ(header->transactions, 3u);
}

TEST_F(WorkItemCodecTest, CarriesTheKeyAndTheLinesOfAnItemInOrder) {
  const OrderedRecords records{"account-17", {3, 4, 90, 1'000'000'007}};
  const std::string body = EncodeOrdered("a\nb\nc\nd\n", records);
  const absl::StatusOr<WorkItem> item = DecodeWorkItem(body, &blobs_);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->ordered, records);
  EXPECT_EQ(item->slice, "a\nb\nc\nd\n");
  EXPECT_EQ(item->first_line, 3);
  EXPECT_EQ(OrderKeyIn(body), "account-17");
  EXPECT_EQ(DecodeWorkItem(Encode("abc"), &blobs_)->ordered, std::nullopt);
  EXPECT_EQ(OrderKeyIn(Encode("abc")), std::nullopt);
}

TEST_F(WorkItemCodecTest, TellsAnEmptyKeyFromNone) {
  EXPECT_EQ(OrderKeyIn(EncodeOrdered("a\n", {"", {1}})), "");
  EXPECT_EQ(OrderKeyIn(EncodeOrdered("a\n", {std::nullopt, {1}})), std::nullopt);
}

TEST_F(WorkItemCodecTest, ClaimChecksALargeItemInOrder) {
  const std::string noise = Noise(kInlinePayloadBytes + 1);
  const absl::StatusOr<WorkItem> item = DecodeWorkItem(EncodeOrdered(noise, {"key", {1}}), &blobs_);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->slice, noise);
  EXPECT_EQ(blobs_.blobs.size(), 1u);
}

TEST_F(WorkItemCodecTest, RefusesAnItemInOrderThatLacksALine) {
  v1::WorkItem message;
  ASSERT_TRUE(message.ParseFromString(EncodeOrdered("a\nb\n", {"key", {1, 2}})));
  message.mutable_ordered()->clear_line_steps();
  EXPECT_TRUE(absl::IsDataLoss(DecodeWorkItem(message.SerializeAsString(), &blobs_).status()));
}

// A muster of before looks at its payloads, and finds none but fields that it does not know.
TEST_F(WorkItemCodecTest, AnItemInOrderHasNoneOfThePayloadsOfBefore) {
  v1::WorkItem message;
  ASSERT_TRUE(message.ParseFromString(EncodeOrdered("a\n", {"key", {1}})));
  EXPECT_FALSE(message.has_inline_() || message.has_blob() || message.has_oversized() ||
               message.has_source());
}

}  // namespace
}  // namespace muster::item
