// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/receipt_check.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBatch = 7;

// A batch in the ledger and in the report, item by item.
class ReceiptCheckTest : public ::testing::Test {
 protected:
  ReceiptCheckTest() {
    const backend::DataDirUrls urls(dir_.path());
    ledger_ = backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite).value();
    report_ = backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, &clock_).value();
    EXPECT_TRUE(report_->RegisterBatch({kBatch, "retail", "r1", {}}).ok());
  }

  void Split(uint64_t items, const std::string& job = "retail") {
    ledger::Batch batch;
    batch.number = kBatch;
    batch.job = job;
    batch.job_revision = "r1";
    batch.handler_version = "v1";
    ASSERT_TRUE(ledger_->Create(batch).ok());
    std::vector<ledger::ItemBoundary> boundaries;
    for (uint64_t i = 0; i < items; ++i) boundaries.push_back({i, 1, 1, 5, ContentOf(i), false});
    ASSERT_TRUE(ledger_->Append(kBatch, 0, boundaries).ok());
    ASSERT_TRUE(ledger_->Seal(kBatch, items).ok());
  }

  // Counts the items, and issues the receipt of the batch with exactly these items.
  void CountAll(uint64_t items) {
    report::CommitRequest commit{"out", 1, {}};
    for (uint64_t i = 0; i < items; ++i) {
      report::CountedItem item;
      item.batch = kBatch;
      item.index = i;
      item.transactions = 5;
      item.aggregated = 5;
      item.content = ContentOf(i);
      item.handler_version = "v1";
      commit.items.push_back(item);
    }
    ASSERT_TRUE(report_->Commit(commit).ok());
    report::BatchFacts facts;
    facts.batch = kBatch;
    facts.job = "retail";
    facts.job_revision = "r1";
    facts.handler_version = "v1";
    facts.items = items;
    facts.transactions = 5 * items;
    ASSERT_TRUE(report_->Complete(facts).ok());
  }

  std::vector<std::string> Check() {
    auto reader = report_->Read();
    const auto differences = CheckReceipt(kBatch, *ledger_, **reader);
    EXPECT_TRUE(differences.ok()) << differences.status();
    return differences.value_or(std::vector<std::string>());
  }

  static base::Fingerprint128 ContentOf(uint64_t index) {
    return base::Fingerprint(absl::StrCat(index));
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<report::ReportStore> report_;
};

TEST_F(ReceiptCheckTest, FindsNothingWhereBothBooksAgree) {
  Split(3);
  CountAll(3);
  EXPECT_THAT(Check(), IsEmpty());
}

// The report alone is consistent: it has no trace of an item that it never received.
TEST_F(ReceiptCheckTest, MissesAnItemThatOnlyTheLedgerHas) {
  Split(3);
  CountAll(2);
  EXPECT_THAT(Check(), ElementsAre("the receipt says 'items 2', the ledger '3'",
                                   "the receipt says 'transactions 10', the ledger '15'"));
}

TEST_F(ReceiptCheckTest, FindsAnItemThatTheLedgerDoesNotHave) {
  Split(2);
  CountAll(3);
  EXPECT_THAT(Check(), Contains("item 2 is not in the ledger"));
}

TEST_F(ReceiptCheckTest, FindsNothingWhereARetentionHasDeletedTheItems) {
  Split(3);
  CountAll(3);
  ASSERT_TRUE(ledger_->MarkComplete(kBatch, clock_.Now()).ok());
  ASSERT_TRUE(ledger_->BeginToDropItems(kBatch).ok());
  ASSERT_TRUE(ledger_->DropItems(kBatch).ok());
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(ReceiptCheckTest, FindsTheReceiptOfAnotherJob) {
  Split(2, "wholesale");
  CountAll(2);
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("'job retail', the ledger 'wholesale'")));
}

TEST_F(ReceiptCheckTest, FindsABatchThatTheLedgerDoesNotKnow) {
  CountAll(2);
  EXPECT_THAT(Check(), ElementsAre("the ledger does not know the batch"));
}

}  // namespace
}  // namespace muster::cli
