// SPDX-License-Identifier: Apache-2.0
#include "services/controller/ledger_cache.h"

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::controller {
namespace {

using ::testing::IsEmpty;

base::Fingerprint128 ContentOf(uint64_t index) {
  return base::Fingerprint(absl::StrCat("slice ", index));
}

// The ledgers of all batches; counts the questions about each.
class CountingRecords final : public ledger::BatchRecords {
 public:
  ledger::Batch& operator[](uint64_t batch) { return batches_[batch]; }
  int questions(uint64_t batch) {
    base::MutexLock lock(&mu_);
    return questions_[batch];
  }
  // From now on, a question is answered only when so many have been asked.
  void AnswerTogether(int questions) { together_ = questions; }

  absl::StatusOr<ledger::Batch> Get(uint64_t batch) override {
    base::MutexLock lock(&mu_);
    ++questions_[batch];
    --together_;
    changed_.NotifyAll();
    while (together_ > 0) changed_.Wait(&mu_);
    return batches_.at(batch);
  }
  absl::StatusOr<std::vector<ledger::ItemBoundary>> Items(uint64_t batch, uint64_t first_index,
                                                          size_t max_items) override {
    std::vector<ledger::ItemBoundary> items;
    for (uint64_t i = first_index; i < batches_.at(batch).items && items.size() < max_items; ++i) {
      items.push_back({.offset = 0, .length = 1, .transactions = 1, .content = ContentOf(i)});
    }
    return items;
  }
  absl::Status MarkComplete(uint64_t, absl::Time) override { return absl::OkStatus(); }

 private:
  std::map<uint64_t, ledger::Batch> batches_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<uint64_t, int> questions_ ABSL_GUARDED_BY(mu_);
  std::atomic<int> together_ = 0;
};

class LedgerCacheTest : public ::testing::Test {
 protected:
  void Add(uint64_t number, uint64_t items,
           ledger::BatchState state = ledger::BatchState::kSealed) {
    ledger::Batch& batch = records_[number];
    batch.number = number;
    batch.items = items;
    batch.state = state;
    report::BatchShape shape;
    shape.batch = number;
    shape.job = "shop";
    shape.job_revision = "1";
    ASSERT_TRUE(report_->RegisterBatch(shape).ok());
  }

  // A result of the batch comes.
  static void Use(LedgerCache* cache, uint64_t batch, uint64_t index = 0) {
    report::CountedItem item;
    item.batch = batch;
    item.index = index;
    item.transactions = 1;
    item.content = ContentOf(index);
    const absl::Status fits = cache->Check(item);
    EXPECT_TRUE(fits.ok()) << fits;
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  CountingRecords records_;
  const std::unique_ptr<report::ReportStore> report_ =
      report::sqlite::OpenSqliteReport(dir_ / "report.db", {.clock = &clock_}).value();
};

// The batch with the lowest number, which was at work for the longest time, was read anew for each
// batch that began.
TEST_F(LedgerCacheTest, KeepsABatchThatIsAtWorkWhileOthersComeAndGo) {
  LedgerCache cache(&records_, report_.get(), {.batches = 3});
  for (uint64_t number = 1; number <= 20; ++number) {
    Add(number, 2);
    Use(&cache, number);
    Use(&cache, 1);
  }
  EXPECT_EQ(records_.questions(1), 1);
}

TEST_F(LedgerCacheTest, ReadsEachOf65OpenBatchesOnceWhoseResultsComeInTurn) {
  LedgerCache cache(&records_, report_.get());
  for (uint64_t number = 1; number <= 65; ++number) Add(number, 3);
  for (uint64_t index = 0; index < 3; ++index) {
    for (uint64_t number = 1; number <= 65; ++number) Use(&cache, number, index);
  }
  for (uint64_t number = 1; number <= 65; ++number) EXPECT_EQ(records_.questions(number), 1);
}

TEST_F(LedgerCacheTest, RemembersABoundedNumberOfItems) {
  LedgerCache cache(&records_, report_.get(), {.batches = 10, .items = 10});
  Add(1, 6);
  Add(2, 6);
  Add(3, 20);
  for (const uint64_t number : {1, 2, 1}) Use(&cache, number);
  EXPECT_EQ(records_.questions(1), 2) << "it had to go for the other one";
  Use(&cache, 3, 19);
  Use(&cache, 3, 0);
  EXPECT_EQ(records_.questions(3), 1) << "one that is larger is there alone";
}

// Cancelled batches stay: once there were as many as it remembers, it prepared for none any more.
TEST_F(LedgerCacheTest, PreparesForABatchAlsoWhenItRemembersAsManyAsItMay) {
  LedgerCache cache(&records_, report_.get(), {.batches = 3});
  for (uint64_t number = 1; number <= 4; ++number) Add(number, 1);
  for (uint64_t number = 1; number <= 3; ++number) Use(&cache, number);
  EXPECT_THAT(cache.Prepare({4}), IsEmpty());
  EXPECT_EQ(records_.questions(4), 1);
  Use(&cache, 4);
  EXPECT_EQ(records_.questions(4), 1) << "and not again";
}

// One after the other, the results of hundreds of small batches waited for each other's ledgers.
TEST_F(LedgerCacheTest, PreparesForSeveralBatchesAtATime) {
  LedgerCache cache(&records_, report_.get());
  for (uint64_t number = 1; number <= 4; ++number) Add(number, 1);
  Use(&cache, 1);
  records_.AnswerTogether(3);
  EXPECT_THAT(cache.Prepare({1, 2, 3, 4}), IsEmpty());
  for (uint64_t number = 1; number <= 4; ++number) EXPECT_EQ(records_.questions(number), 1);
}

TEST_F(LedgerCacheTest, SaysWhichBatchesItCouldNotPrepareFor) {
  LedgerCache cache(&records_, report_.get());
  Add(1, 1);
  records_[2].number = 2;  // not registered
  const auto failed = cache.Prepare({1, 2});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(failed.at(2))) << failed.at(2);
}

TEST_F(LedgerCacheTest, AsksNotWhetherABatchIsCompleteThatHasMoreItems) {
  LedgerCache cache(&records_, report_.get());
  Add(1, 3, ledger::BatchState::kOpen);
  Use(&cache, 1);
  for (int i = 0; i < 25; ++i) EXPECT_FALSE(*cache.WouldComplete(1, 2));
  EXPECT_TRUE(cache.LacksItems(1, 2));
  EXPECT_FALSE(cache.LacksItems(1, 3)) << "it may be all of them";
  EXPECT_EQ(records_.questions(1), 1);
}

// A hand is looked at every two milliseconds.
TEST_F(LedgerCacheTest, AsksEverMoreSeldomWhetherAnOpenBatchIsSealed) {
  LedgerCache cache(&records_, report_.get());
  Add(1, 3, ledger::BatchState::kOpen);
  Use(&cache, 1);
  for (int i = 0; i < 25; ++i) EXPECT_FALSE(*cache.WouldComplete(1, 3));
  EXPECT_EQ(records_.questions(1), 1 + 5);
  records_[1].items = 4;
  EXPECT_FALSE(*cache.WouldComplete(1, 4)) << "another number of items: it asks at once";
  EXPECT_EQ(records_.questions(1), 1 + 6);
  records_[1].state = ledger::BatchState::kSealed;
  EXPECT_TRUE(*cache.WouldComplete(1, 4));
  EXPECT_EQ(records_.questions(1), 1 + 7);
  EXPECT_TRUE(*cache.WouldComplete(1, 4));
  EXPECT_EQ(records_.questions(1), 1 + 7) << "once it is sealed, it is known";
}

}  // namespace
}  // namespace muster::controller
