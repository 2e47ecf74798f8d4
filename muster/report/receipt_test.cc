// SPDX-License-Identifier: Apache-2.0
#include "muster/report/receipt.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::report {
namespace {

using ::testing::HasSubstr;

Receipt Sample() {
  Receipt receipt;
  receipt.batch = 7;
  receipt.job = "retail";
  receipt.job_revision = "5f1c";
  receipt.handler_version = "1";
  receipt.items = 3;
  receipt.transactions = 30;
  receipt.aggregated = 18;
  receipt.rejected = 2;
  receipt.dead_lettered = 10;
  receipt.items_dead = 1;
  receipt.items_by_version = {{"1", 2}, {"2 beta", 1}};
  receipt.attempts = 7;
  receipt.duplicates_dropped = 4;
  receipt.conflicts = 5;
  receipt.created = absl::FromUnixSeconds(1323435000);
  receipt.first_counted = receipt.created + absl::Microseconds(42);
  receipt.last_counted = receipt.created + absl::Seconds(2);
  receipt.ack_survives = AckSurvives::kPower;
  receipt.items_sha256 = "aa";
  receipt.rows_sha256 = "bb";
  receipt.rejections_sha256 = "cc";
  return receipt;
}

// A change of the form changes the meaning of old receipts' checksums: raise the version of the
// form.
constexpr char kSampleText[] =
    "muster-receipt 1\nbatch 7\nrevision 1\njob retail\njob_revision 5f1c\nhandler_version 1\n"
    "items 3\ntransactions 30\naggregated 18\nrejected 2\ndead_lettered 10\nitems_dead 1\n"
    "items_by_version 2 1\nitems_by_version 1 2 beta\nattempts 7\nduplicates_dropped 4\n"
    "conflicts 5\ncreated 2011-12-09T12:50:00Z\nfirst_counted 2011-12-09T12:50:00.000042Z\n"
    "last_counted 2011-12-09T12:50:02Z\nack_survives power\nitems_sha256 aa\nrows_sha256 bb\n"
    "rejections_sha256 cc\n";

TEST(ReceiptTest, IsThisText) { EXPECT_EQ(Sample().ToText(), kSampleText); }

TEST(ReceiptTest, IsReadBackFromItsText) {
  const absl::StatusOr<Receipt> receipt = ParseReceipt(kSampleText);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->ToText(), kSampleText);
  EXPECT_EQ(receipt->items_by_version.at("2 beta"), 1);
}

TEST(ReceiptTest, KeepsNamesThatHoldLineFeeds) {
  Receipt receipt = Sample();
  receipt.job = "a\nitems 9\\n\r";
  EXPECT_EQ(ParseReceipt(receipt.ToText())->job, receipt.job);
}

TEST(ReceiptTest, LeavesTheVersionEmptyOfABatchThatIsBoundToNone) {
  Receipt receipt = Sample();
  receipt.handler_version = "";
  EXPECT_THAT(receipt.ToText(), HasSubstr("\nhandler_version \nitems 3\n"));
  const absl::StatusOr<Receipt> read = ParseReceipt(receipt.ToText());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->handler_version, "");
  EXPECT_EQ(read->ToText(), receipt.ToText());
  EXPECT_NE(receipt.Checksum(), Sample().Checksum());
}

TEST(ReceiptTest, SaysNeverForABatchWithoutItems) {
  Receipt receipt = Sample();
  receipt.first_counted = absl::InfinitePast();
  EXPECT_THAT(receipt.ToText(), HasSubstr("first_counted never\n"));
  EXPECT_EQ(ParseReceipt(receipt.ToText())->first_counted, absl::InfinitePast());
}

TEST(ReceiptTest, ChecksumDependsOnEveryNumber) {
  Receipt other = Sample();
  ++other.attempts;
  EXPECT_NE(other.Checksum(), Sample().Checksum());
}

// The error names a line that is missing, or that has a letter in the place of a number.
TEST(ReceiptTest, NamesTheLineThatIsDamaged) {
  for (const char* line : {"batch 7\n", "transactions 30\n", "attempts 7\n", "conflicts 5\n"}) {
    const auto receipt = ParseReceipt(absl::StrReplaceAll(kSampleText, {{line, ""}}));
    EXPECT_EQ(receipt.status().code(), absl::StatusCode::kDataLoss) << line;
    const std::string name(line, std::string(line).find(' '));
    EXPECT_THAT(std::string(receipt.status().message()), HasSubstr("'" + name + "'"));
  }
  EXPECT_FALSE(ParseReceipt(absl::StrReplaceAll(kSampleText, {{"attempts 7", "attempts x"}})).ok());
  EXPECT_FALSE(ParseReceipt(absl::StrReplaceAll(kSampleText, {{"power", "fire"}})).ok());
  EXPECT_FALSE(ParseReceipt(absl::StrReplaceAll(kSampleText, {{"receipt 1", "receipt 2"}})).ok());
  EXPECT_FALSE(ParseReceipt(std::string(kSampleText) + "more 1\n").ok());
  EXPECT_FALSE(ParseReceipt("").ok());
}

}  // namespace
}  // namespace muster::report
