// SPDX-License-Identifier: Apache-2.0
#include "muster/item/complete_batch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::item {
namespace {

using ::testing::HasSubstr;

ledger::Batch Complete() {
  ledger::Batch batch;
  batch.number = 7;
  batch.items = 5;
  batch.transactions = 500;
  batch.state = ledger::BatchState::kComplete;
  return batch;
}

report::Progress Counted(int64_t items, int64_t receipt_revision) {
  report::Progress counted;
  counted.items_counted = items;
  counted.transactions = items * 100;
  counted.receipt_revision = receipt_revision;
  return counted;
}

TEST(CompleteBatchTest, TheReportProvesIt) {
  EXPECT_TRUE(CheckCounted(Complete(), Counted(5, 1)).ok());
}

TEST(CompleteBatchTest, IsTroubleWhereTheReportHasAPartOfItOrNoReceipt) {
  const absl::Status part = CheckCounted(Complete(), Counted(3, 0));
  EXPECT_TRUE(absl::IsDataLoss(part));
  EXPECT_THAT(part.ToString(), HasSubstr("300 of its 500 transactions and no receipt"));
  EXPECT_TRUE(absl::IsDataLoss(CheckCounted(Complete(), Counted(5, 0))));
  EXPECT_TRUE(absl::IsDataLoss(CheckCounted(Complete(), Counted(4, 1))));
  EXPECT_TRUE(absl::IsDataLoss(CheckCounted(Complete(), {})));
}

TEST(CompleteBatchTest, IsNoTroubleWhileItIsCounted) {
  ledger::Batch batch = Complete();
  batch.state = ledger::BatchState::kSealed;
  EXPECT_TRUE(CheckCounted(batch, Counted(3, 0)).ok());
}

}  // namespace
}  // namespace muster::item
