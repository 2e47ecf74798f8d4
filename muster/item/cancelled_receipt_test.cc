// SPDX-License-Identifier: Apache-2.0
#include "muster/item/cancelled_receipt.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"

namespace muster::item {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kCreated = absl::FromUnixSeconds(1323435000);
const absl::Time kAsked = kCreated + absl::Seconds(4);

ledger::Batch GivenUp() {
  ledger::Batch batch;
  batch.number = 7;
  batch.job = "retail";
  batch.job_revision = "5f1c";
  batch.handler_version = "1";
  batch.created = kCreated;
  batch.state = ledger::BatchState::kCancelled;
  batch.completed = kCreated + absl::Seconds(3);
  batch.cancel_reason = "a mistake";
  batch.items = 4;
  batch.transactions = 40;
  return batch;
}

report::Tally Counted() {
  report::Tally tally;
  tally.progress.items_counted = 2;
  tally.progress.items_dead = 1;
  tally.progress.transactions = 30;
  tally.progress.aggregated = 18;
  tally.progress.rejected = 2;
  tally.progress.dead_lettered = 10;
  tally.progress.attempts = 7;
  tally.progress.duplicates = 5;
  tally.progress.conflicts = 6;
  tally.progress.first_counted = kCreated + absl::Seconds(1);
  tally.progress.last_counted = kCreated + absl::Microseconds(2000042);
  tally.items_by_version = {{"1", 2}, {"2 beta", 1}};
  tally.items_sha256 = "aa";
  tally.rows_sha256 = "bb";
  tally.rejections_sha256 = "cc";
  return tally;
}

constexpr char kText[] =
    "muster-receipt 2\nbatch 7\nstate cancelled\ncancelled 2011-12-09T12:50:03Z\n"
    "cancel_reason a mistake\ncounts so_far\nas_of 2011-12-09T12:50:04Z\njob retail\n"
    "job_revision 5f1c\nhandler_version 1\nitems 4\nitems_counted 3\nitems_dead 1\n"
    "transactions 40\naggregated 18\nrejected 2\ndead_lettered 10\nuncounted 10\n"
    "items_by_version 2 1\nitems_by_version 1 2 beta\nattempts 7\nduplicates_dropped 5\n"
    "conflicts 6\ncreated 2011-12-09T12:50:00Z\nfirst_counted 2011-12-09T12:50:01Z\n"
    "last_counted 2011-12-09T12:50:02.000042Z\nitems_sha256 aa\nrows_sha256 bb\n"
    "rejections_sha256 cc\n";

TEST(CancelledReceiptTest, IsThisTextWithItsChecksum) {
  const auto receipt = CancelledReceipt(GivenUp(), Counted(), kAsked);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->text, kText);
  EXPECT_EQ(receipt->checksum, base::Sha256Hex(kText));
  EXPECT_TRUE(CountsMayChange(*receipt));
}

TEST(CancelledReceiptTest, IsFinalAndAlwaysTheSameOnceEveryItemIsCounted) {
  ledger::Batch batch = GivenUp();
  batch.items = 3;
  batch.transactions = 30;
  const auto receipt = CancelledReceipt(batch, Counted(), kAsked);
  EXPECT_THAT(receipt->text,
              AllOf(HasSubstr("\ncounts final\njob "), HasSubstr("\nuncounted 0\n")));
  EXPECT_FALSE(CountsMayChange(*receipt));
  EXPECT_EQ(CancelledReceipt(batch, Counted(), kAsked + absl::Hours(1))->text, receipt->text);
}

TEST(CancelledReceiptTest, TellsOfABatchOfWhichNothingWasCounted) {
  const auto receipt = CancelledReceipt(GivenUp(), report::EmptyTally(7), kAsked);
  EXPECT_THAT(receipt->text, AllOf(HasSubstr("\nitems_counted 0\n"), HasSubstr("\nuncounted 40\n"),
                                   HasSubstr("\nlast_counted never\n"),
                                   HasSubstr("\nitems_sha256 " + base::Sha256Hex("") + "\n")));
  ledger::Batch unsplit = GivenUp();
  unsplit.items = unsplit.transactions = 0;
  EXPECT_FALSE(CountsMayChange(*CancelledReceipt(unsplit, report::EmptyTally(7), kAsked)));
}

TEST(CancelledReceiptTest, KeepsAReasonOnItsLine) {
  ledger::Batch batch = GivenUp();
  batch.cancel_reason = "all\ncounts final\r\\";
  EXPECT_THAT(CancelledReceipt(batch, Counted(), kAsked)->text,
              AllOf(HasSubstr("\ncancel_reason all\\ncounts final\\r\\\\\n"),
                    Not(HasSubstr("\ncounts final\n"))));
}

TEST(CancelledReceiptTest, IsNoneOfABatchThatIsNotCancelled) {
  for (const auto state :
       {ledger::BatchState::kOpen, ledger::BatchState::kSealed, ledger::BatchState::kComplete}) {
    ledger::Batch batch = GivenUp();
    batch.state = state;
    EXPECT_TRUE(absl::IsFailedPrecondition(CancelledReceipt(batch, Counted(), kAsked).status()));
  }
}

TEST(CancelledReceiptTest, DoesNotAddUpWhatLedgerAndReportContradict) {
  ledger::Batch batch = GivenUp();
  batch.transactions = 29;
  EXPECT_TRUE(absl::IsDataLoss(CancelledReceipt(batch, Counted(), kAsked).status()));
  batch = GivenUp();
  batch.items = 2;
  EXPECT_TRUE(absl::IsDataLoss(CancelledReceipt(batch, Counted(), kAsked).status()));
}

}  // namespace
}  // namespace muster::item
