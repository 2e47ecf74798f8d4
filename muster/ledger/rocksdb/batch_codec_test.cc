// SPDX-License-Identifier: Apache-2.0

// The stored bytes of a batch: golden forms, which no later change may alter.
#include "muster/ledger/rocksdb/batch_codec.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "muster/base/text.h"
#include "muster/rocksdb/checked_value.h"

namespace muster::ledger::rocksdb {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;

constexpr char kGoldenRecord[] =
    "2727ca926101bf50080712056d617263681a0672657461696c22203030313132323333343435353636373738383939"
    "6161626263636464656566662a0c6e616d653a2072657461696c3201313a0461636d6542072f696e2e6373764a104c"
    "de52cc89d88ed2cc653b521344204452080880dea0cb0510015a0308ac0260e8076a10917e1274274fc195b27a2d23"
    "88d9568c";
constexpr char kGoldenProgress[] = "fc8e006b7b80e5f7080310e8071803200f280330023a0608bcdea0cb05";
constexpr char kGoldenItems[] =
    "bc545d2bb34634430a181064180220052a100bdd18088ab0530c9ee69e6cc606f43c0a1d0864108407180720012a10"
    "99aa06d3014798d86001c324468d497f3001";

Batch Golden() {
  Batch batch;
  batch.number = 7;
  batch.request_id = "march";
  batch.job = "retail";
  batch.job_revision = "00112233445566778899aabbccddeeff";
  batch.job_definition = "name: retail";
  batch.handler_version = "1";
  batch.tenant = "acme";
  batch.source_path = "/in.csv";
  batch.source_header = base::Fingerprint("header");
  batch.source_size = 1000;
  batch.source_content = base::Fingerprint("content");
  batch.created = absl::FromUnixNanos(1'500'000'000'000'000'001);
  batch.sla = absl::Minutes(5);
  batch.state = BatchState::kComplete;
  batch.source_bytes = 1000;
  batch.items = 3;
  batch.transactions = 15;
  batch.enqueued_items = 3;
  batch.refills = 2;
  batch.completed = absl::FromUnixSeconds(1'500'000'060);
  return batch;
}

std::vector<ItemBoundary> ItemsOfGolden() {
  return {{0, 100, 2, 5, base::Fingerprint("item"), false},
          {100, 900, 7, 1, base::Fingerprint(""), true}};
}

TEST(BatchCodecTest, CopiesARecordWithoutItsContent) {
  Batch batch = Golden();
  batch.content = "the whole input";
  EXPECT_EQ(absl::BytesToHexString(EncodeCopy(batch)), kGoldenRecord);
  EXPECT_EQ(absl::BytesToHexString(CopyKey(7)), "007265636f7264200000000000000007");
  EXPECT_EQ(NumberOfCopy(CopyKey(7)), 7u);
  EXPECT_EQ(NumberOfCopy("a request id"), std::nullopt);
  EXPECT_EQ(NumberOfCopy(CopyKey(7) + "and more"), std::nullopt);
}

TEST(BatchCodecTest, KeepsTheRequestIdsOfTenantsApart) {
  EXPECT_EQ(absl::BytesToHexString(TenantKey("me", "r", 7)),
            "0068696464656e20000000000000000200000000000000016d65720000000000000007");
  EXPECT_EQ(absl::BytesToHexString(TenantKey("me", "r")), "0074656e616e742000000000000000026d6572");
  EXPECT_TRUE(IsTenantKey(TenantKey("me", "r", 7)));
  EXPECT_TRUE(IsTenantKey(TenantKey("me", "r")));
  EXPECT_FALSE(IsTenantKey("hidden request"));
}

// Field 30 of the record.
TEST(BatchCodecTest, CopiesTheProgressOfACancelledBatchBesideItsRecord) {
  Batch cancelled = Golden(), copied;
  cancelled.state = BatchState::kCancelled;
  cancelled.cancel_reason = "sent twice";
  const std::string copy = EncodeCopy(cancelled);
  EXPECT_TRUE(absl::StartsWith(
      *muster::rocksdb::CheckedPayload(copy, "form"),
      *muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenRecord), "form")));
  ASSERT_TRUE(DecodeCopy(copy, 7, &copied).ok());
  EXPECT_EQ(EncodeProgress(copied), EncodeProgress(cancelled));
  EXPECT_EQ(copied.request_id, "march");
  Batch of_record;
  ASSERT_TRUE(DecodeRecord(copy, 7, &of_record).ok());
  EXPECT_EQ(of_record.state, BatchState::kOpen);
  EXPECT_EQ(EncodeRecord(of_record), base::BytesFromHex(kGoldenRecord));
}

TEST(BatchCodecTest, WritesTheBytesThatEveryReleaseReads) {
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord(Golden())), kGoldenRecord);
  EXPECT_EQ(absl::BytesToHexString(EncodeProgress(Golden())), kGoldenProgress);
  EXPECT_EQ(absl::BytesToHexString(EncodeItems(ItemsOfGolden())), kGoldenItems);
}

TEST(BatchCodecTest, ReadsWhatTheFirstReleaseWrote) {
  Batch batch;
  ASSERT_TRUE(DecodeRecord(base::BytesFromHex(kGoldenRecord), 7, &batch).ok());
  ASSERT_TRUE(DecodeProgress(base::BytesFromHex(kGoldenProgress), 7, &batch).ok());
  EXPECT_EQ(batch.request_id, "march");
  EXPECT_EQ(batch.created, Golden().created);
  EXPECT_EQ(batch.sla, absl::Minutes(5));
  EXPECT_EQ(batch.source_content, base::Fingerprint("content"));
  EXPECT_EQ(batch.state, BatchState::kComplete);
  EXPECT_EQ(batch.refills, 2u);
  EXPECT_EQ(EncodeRecord(batch), base::BytesFromHex(kGoldenRecord));
  EXPECT_EQ(EncodeProgress(batch), base::BytesFromHex(kGoldenProgress));
  const auto items = DecodeItems(base::BytesFromHex(kGoldenItems), 7);
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_EQ(EncodeItems(*items), base::BytesFromHex(kGoldenItems));
}

// Field 7, of the items of a job with order_by.
TEST(BatchCodecTest, KeepsTheWindowOfAnItem) {
  std::vector<ItemBoundary> items = ItemsOfGolden();
  items[1].window = ledger::ItemWindow{33'554'432, 400'001};
  const auto read = DecodeItems(EncodeItems(items), 7);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)[0].window, std::nullopt);
  EXPECT_EQ((*read)[1].window, items[1].window);
}

// Fields 14 and 15 follow the fields of the first release, whose records keep their form.
TEST(BatchCodecTest, KeepsTheTraceThatWasChosenForABatch) {
  constexpr char kGoldenTrace[] =
      "721a004bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b7017a03613d62";
  Batch traced = Golden(), read;
  traced.trace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1, "a=b"};
  const std::string record = EncodeRecord(traced);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(record, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenRecord), "form"),
                   base::BytesFromHex(kGoldenTrace)));
  ASSERT_TRUE(DecodeRecord(record, 7, &read).ok());
  EXPECT_EQ(read.trace, traced.trace);
  ASSERT_TRUE(DecodeRecord(base::BytesFromHex(kGoldenRecord), 7, &read).ok());
  EXPECT_EQ(read.trace, std::nullopt);
}

// Field 28, in order of name.
TEST(BatchCodecTest, KeepsTheLabelsOfABatch) {
  constexpr char kGoldenLabels[] = "e201080a0372756e120137e2010f0a047465616d120762696c6c696e67";
  Batch labelled = Golden(), read;
  labelled.labels = {{"team", "billing"}, {"run", "7"}};
  const std::string record = EncodeRecord(labelled);
  EXPECT_EQ(absl::BytesToHexString(*muster::rocksdb::CheckedPayload(record, "form")),
            absl::StrCat(absl::BytesToHexString(*muster::rocksdb::CheckedPayload(
                             base::BytesFromHex(kGoldenRecord), "form")),
                         kGoldenLabels));
  ASSERT_TRUE(DecodeRecord(record, 7, &read).ok());
  EXPECT_EQ(read.labels, labelled.labels);
  EXPECT_EQ(read.unknown_of_record, "");
}

// Field 16.
TEST(BatchCodecTest, KeepsTheContentOfAShortUpload) {
  Batch whole = Golden(), read;
  whole.content = "key\n";
  const std::string record = EncodeRecord(whole);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(record, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenRecord), "form"),
                   base::BytesFromHex("820104"), "key\n"));
  ASSERT_TRUE(DecodeRecord(record, 7, &read).ok());
  EXPECT_EQ(read.content, "key\n");
}

// Field 17.
TEST(BatchCodecTest, KeepsWhereAnUploadLiesInItsDataDirectory) {
  Batch upload = Golden(), read;
  upload.content_path = "uploads/7";
  const std::string record = EncodeRecord(upload);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(record, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenRecord), "form"),
                   base::BytesFromHex("8a0109"), "uploads/7"));
  ASSERT_TRUE(DecodeRecord(record, 7, &read).ok());
  EXPECT_EQ(read.content_path, "uploads/7");
}

// Field 18.
TEST(BatchCodecTest, KeepsThatTheRequestIdIsClaimed) {
  Batch claimed = Golden(), read;
  claimed.request_claimed = true;
  const std::string record = EncodeRecord(claimed);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(record, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenRecord), "form"),
                   base::BytesFromHex("900101")));
  ASSERT_TRUE(DecodeRecord(record, 7, &read).ok());
  EXPECT_TRUE(read.request_claimed);
}

// Field 20 of the progress. What an older muster has done since counts more.
TEST(BatchCodecTest, KeepsThatABatchIsUndecidedUntilAnItemIsPutOrTheBatchEnds) {
  Batch undecided, read;
  undecided.undecided = true;
  const std::string progress = EncodeProgress(undecided);
  EXPECT_EQ(*muster::rocksdb::CheckedPayload(progress, "form"),
            absl::StrCat(*muster::rocksdb::CheckedPayload(EncodeProgress(Batch()), "form"),
                         base::BytesFromHex("a00101")));
  ASSERT_TRUE(DecodeProgress(progress, 7, &read).ok());
  EXPECT_TRUE(read.undecided);
  Batch put = undecided, ended = undecided;
  put.enqueued_items = 1;
  ASSERT_TRUE(DecodeProgress(EncodeProgress(put), 7, &read).ok());
  EXPECT_FALSE(read.undecided);
  ended.state = BatchState::kCancelled;
  ASSERT_TRUE(DecodeProgress(EncodeProgress(ended), 7, &read).ok());
  EXPECT_FALSE(read.undecided);
}

// Field 21 of the progress.
TEST(BatchCodecTest, KeepsThatTheUploadOfABatchHasExpired) {
  Batch expired, read;
  expired.upload_expired = true;
  const std::string progress = EncodeProgress(expired);
  EXPECT_EQ(*muster::rocksdb::CheckedPayload(progress, "form"),
            absl::StrCat(*muster::rocksdb::CheckedPayload(EncodeProgress(Batch()), "form"),
                         base::BytesFromHex("a80101")));
  ASSERT_TRUE(DecodeProgress(progress, 7, &read).ok());
  EXPECT_TRUE(read.upload_expired);
}

// Field 27, and field 18 of the progress.
TEST(BatchCodecTest, KeepsWhoseTheBatchIs) {
  Batch owned = Golden(), read;
  owned.owner = "ab";
  owned.disowned = true;
  const std::string record = EncodeRecord(owned), progress = EncodeProgress(owned);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(record, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenRecord), "form"),
                   base::BytesFromHex("da01026162")));
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(progress, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenProgress), "form"),
                   base::BytesFromHex("900101")));
  ASSERT_TRUE(DecodeRecord(record, 7, &read).ok());
  ASSERT_TRUE(DecodeProgress(progress, 7, &read).ok());
  EXPECT_EQ(read.owner, "ab");
  EXPECT_TRUE(read.disowned);
  Batch old;
  ASSERT_TRUE(DecodeRecord(base::BytesFromHex(kGoldenRecord), 7, &old).ok());
  EXPECT_EQ(old.owner, "");
}

// Field 9.
TEST(BatchCodecTest, KeepsWhatTheSubmitterOfAnUploadSealed) {
  Batch sealed = Golden(), read;
  sealed.sealed_content = ledger::SealedContent{1000, base::Fingerprint("content")};
  const std::string progress = EncodeProgress(sealed);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(progress, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenProgress), "form"),
                   base::BytesFromHex("4a1508e8071210917e1274274fc195b27a2d2388d9568c")));
  ASSERT_TRUE(DecodeProgress(progress, 7, &read).ok());
  EXPECT_EQ(read.sealed_content, sealed.sealed_content);
  Batch old;
  ASSERT_TRUE(DecodeProgress(base::BytesFromHex(kGoldenProgress), 7, &old).ok());
  EXPECT_EQ(old.sealed_content, std::nullopt);
}

// Field 10 of the progress.
TEST(BatchCodecTest, KeepsHowFarABatchReachesIntoItsQueue) {
  Batch marked = Golden(), read;
  marked.put_marks = {{"in", 300}, {}};
  const std::string progress = EncodeProgress(marked);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(progress, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenProgress), "form"),
                   base::BytesFromHex("52070a02696e10ac025200")));
  ASSERT_TRUE(DecodeProgress(progress, 7, &read).ok());
  EXPECT_EQ(read.put_marks, marked.put_marks);
  ASSERT_TRUE(DecodeProgress(base::BytesFromHex(kGoldenProgress), 7, &read).ok());
  EXPECT_TRUE(read.put_marks.empty());
}

// Fields 24 to 26.
TEST(BatchCodecTest, KeepsTheRetentionOfABatch) {
  Batch kept = Golden(), read;
  kept.retention = ledger::Retention{
      .content = absl::Hours(1), .items = absl::Hours(24), .batch = absl::Hours(240)};
  const std::string record = EncodeRecord(kept);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(record, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenRecord), "form"),
                   base::BytesFromHex("c2010308901cca01040880a305d201040880de34")));
  ASSERT_TRUE(DecodeRecord(record, 7, &read).ok());
  EXPECT_EQ(read.retention, kept.retention);
  Batch old;
  ASSERT_TRUE(DecodeRecord(base::BytesFromHex(kGoldenRecord), 7, &old).ok());
  EXPECT_EQ(old.retention, std::nullopt);
}

// Fields 16, 17 and 19.
TEST(BatchCodecTest, KeepsWhatIsDeletedOfABatch) {
  Batch deleted = Golden(), read;
  deleted.content_deleted = deleted.items_deleted = deleted.blobs_deleted = true;
  const std::string progress = EncodeProgress(deleted);
  EXPECT_EQ(
      *muster::rocksdb::CheckedPayload(progress, "form"),
      absl::StrCat(*muster::rocksdb::CheckedPayload(base::BytesFromHex(kGoldenProgress), "form"),
                   base::BytesFromHex("800101880101980101")));
  ASSERT_TRUE(DecodeProgress(progress, 7, &read).ok());
  EXPECT_TRUE(read.content_deleted);
  EXPECT_TRUE(read.items_deleted);
  EXPECT_TRUE(read.blobs_deleted);
}

// The form that a newer muster writes: a field that this muster does not know follows the known
// fields.
std::string Newer(absl::string_view stored) {
  return muster::rocksdb::CheckedValue(absl::StrCat(
      *muster::rocksdb::CheckedPayload(stored, "form"), base::BytesFromHex("a206036e6577")));
}

TEST(BatchCodecTest, KeepsTheFieldsThatANewerMusterHasAdded) {
  const std::string record = Newer(EncodeRecord(Golden())),
                    progress = Newer(EncodeProgress(Golden()));
  Batch batch;
  ASSERT_TRUE(DecodeRecord(record, 7, &batch).ok());
  ASSERT_TRUE(DecodeProgress(progress, 7, &batch).ok());
  EXPECT_EQ(EncodeRecord(batch), record);
  EXPECT_EQ(EncodeProgress(batch), progress);
  EXPECT_EQ(DecodeItems(Newer(EncodeItems(ItemsOfGolden())), 7)->size(), 2u);
}

TEST(BatchCodecTest, EndsTheItemsOfABatchBeforeThoseOfTheNext) {
  EXPECT_GT(ItemsEnd(UINT64_MAX), ItemsKey(UINT64_MAX, UINT64_MAX));
  EXPECT_GT(ItemsEnd(7), ItemsKey(7, UINT64_MAX));
  EXPECT_LT(ItemsEnd(7), ItemsKey(8, 0));
}

}  // namespace
}  // namespace muster::ledger::rocksdb
