// SPDX-License-Identifier: Apache-2.0

// On a real ledger.
#include "muster/item/batch_filter.h"

#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"

namespace muster::item {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();

class BatchFilterTest : public ::testing::Test {
 protected:
  void Begin(uint64_t number, Labels labels = {}, const std::string& job = "shop") {
    Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat("request-", number);
    batch.job = job;
    batch.created = absl::UnixEpoch() + number * absl::Minutes(1);
    batch.labels = std::move(labels);
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }
  // On many threads, which share syncs: one by one, thousands would take a minute.
  void BeginAll(uint64_t first, uint64_t last) {
    constexpr uint64_t kThreads = 64;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, from = first + i, last] {
        for (uint64_t number = from; number <= last; number += kThreads) Begin(number);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  void End(uint64_t number) {
    ASSERT_TRUE(ledger_->Seal(number, 0).ok());
    ASSERT_TRUE(ledger_->MarkComplete(number, absl::UnixEpoch() + absl::Hours(1)).ok());
  }

  // The numbers of a page, and where the next one begins.
  std::vector<uint64_t> Find(const BatchFilter& filter, uint64_t below = kTop, size_t max = 100) {
    const auto page = FindBatches(*ledger_, filter, below, max, now_);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<uint64_t> numbers;
    for (const Batch& batch : page->batches) numbers.push_back(batch.number);
    next_ = page->next_below;
    return numbers;
  }

  const os::TempDir dir_;
  const std::unique_ptr<ledger::rocksdb::RocksDbBatchLedger> ledger_ =
      ledger::rocksdb::RocksDbBatchLedger::Open(dir_ / "ledger", {}).value();
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(2);
  uint64_t next_ = 0;
};

TEST_F(BatchFilterTest, HidesTheBatchesOfCallsUnlessTheirLabelIsNamed) {
  Begin(1);
  Begin(2, {{"muster/call", "gathered"}});
  Begin(3, {{"muster/call", "own"}, {"team", "a"}});
  EXPECT_THAT(Find({}), ElementsAre(3, 2, 1));
  EXPECT_THAT(Find({.hides_calls = true}), ElementsAre(1));
  EXPECT_THAT(Find({.states = {BatchState::kOpen}, .hides_calls = true}), ElementsAre(1));
  EXPECT_THAT(Find({.labels = {{"muster/call", "own"}}, .hides_calls = true}), ElementsAre(3));
  EXPECT_THAT(Find({.labels = {{"team", "a"}}, .hides_calls = true}), IsEmpty());
}

TEST_F(BatchFilterTest, FindsTheNewestFirstPageByPage) {
  for (uint64_t number = 1; number <= 5; ++number) Begin(number);
  EXPECT_THAT(Find({}, kTop, 2), ElementsAre(5, 4));
  Begin(6);  // between two pages
  EXPECT_THAT(Find({}, next_, 2), ElementsAre(3, 2));
  EXPECT_THAT(Find({}, next_, 2), ElementsAre(1));
  EXPECT_EQ(next_, 0);
}

TEST_F(BatchFilterTest, FindsByEachPartOfTheFilter) {
  Begin(1, {{"team", "billing"}, {"run", "nightly"}});
  Begin(2, {{"team", "billing"}});
  Begin(3, {{"team", "other"}}, "bakery");
  End(2);
  EXPECT_THAT(Find({.job = "bakery"}), ElementsAre(3));
  EXPECT_THAT(Find({.states = {BatchState::kComplete}}), ElementsAre(2));
  EXPECT_THAT(Find({.states = {BatchState::kOpen, BatchState::kSealed}}), ElementsAre(3, 1));
  EXPECT_THAT(Find({.states = {BatchState::kOpen, BatchState::kComplete}}), ElementsAre(3, 2, 1));
  EXPECT_THAT(Find({.since = absl::UnixEpoch() + absl::Minutes(2)}), ElementsAre(3, 2));
  EXPECT_THAT(Find({.labels = {{"team", "billing"}}}), ElementsAre(2, 1));
  EXPECT_THAT(Find({.labels = {{"team", "billing"}, {"run", "nightly"}}}), ElementsAre(1));
  EXPECT_THAT(Find({.labels = {{"team", ""}}}), IsEmpty());
  EXPECT_THAT(Find({.tenant = "acme"}), IsEmpty());
}

TEST_F(BatchFilterTest, FindsWhatIsLateByNowAndWhatWasLateInTheEnd) {
  const auto promised = [this](uint64_t number, std::optional<absl::Duration> sla) {
    Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat(number);
    batch.created = absl::UnixEpoch();
    batch.sla = sla;
    ASSERT_TRUE(ledger_->Create(batch).ok());
  };
  promised(1, absl::Minutes(59));  // complete after an hour
  promised(2, absl::Minutes(61));  // likewise
  promised(3, absl::Minutes(90));  // open, after two hours
  promised(4, absl::Hours(3));     // open
  promised(5, std::nullopt);
  End(1);
  End(2);
  EXPECT_THAT(Find({.late = true}), ElementsAre(3, 1));
  EXPECT_THAT(Find({.states = {BatchState::kOpen}, .late = true}), ElementsAre(3));
}

TEST_F(BatchFilterTest, ShowsNoBatchThatMayBeWithdrawn) {
  Batch batch;
  batch.number = 7;
  batch.request_id = "march";
  batch.undecided = true;
  ASSERT_TRUE(ledger_->Create(batch).ok());
  EXPECT_THAT(Find({}), IsEmpty());
  EXPECT_THAT(Find({.states = {BatchState::kOpen}}), IsEmpty());
}

TEST_F(BatchFilterTest, PagesThroughOpenBatchesWithoutLeavingOneOut) {
  for (uint64_t number = 1; number <= 5; ++number) Begin(number);
  End(4);
  const BatchFilter open{.states = {BatchState::kOpen}};
  EXPECT_THAT(Find(open, kTop, 2), ElementsAre(5, 3));
  EXPECT_THAT(Find(open, next_, 2), ElementsAre(2, 1));
  EXPECT_EQ(next_, 0);
}

// A search for one batch among 12,000 takes two calls, and none of them reads more than 10,000.
TEST_F(BatchFilterTest, NeverReadsAWholeLedgerForOnePage) {
  Begin(1, {{"team", "billing"}});
  BeginAll(2, 12'000);
  const BatchFilter rare{.labels = {{"team", "billing"}}};
  EXPECT_THAT(Find(rare), IsEmpty());
  EXPECT_EQ(next_, 2'001) << "10,000 were read";
  EXPECT_THAT(Find(rare, next_), ElementsAre(1));
  EXPECT_EQ(next_, 0);
  EXPECT_THAT(Find({}, kTop, 1000), SizeIs(1000));
  EXPECT_EQ(next_, 11'001);
}

TEST_F(BatchFilterTest, EndsASearchSinceATimeAnHourBeforeIt) {
  BeginAll(1, 600);
  EXPECT_THAT(Find({.since = absl::UnixEpoch() + absl::Minutes(598)}), ElementsAre(600, 599, 598));
  EXPECT_EQ(next_, 0) << "the 537 older ones need not be looked at";
}

}  // namespace
}  // namespace muster::item
