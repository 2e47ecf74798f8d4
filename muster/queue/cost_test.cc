// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/cost.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::queue {

namespace {

// Eight hours a day, busy for a quarter of them; in the other 22 hours each thread polls once a
// second.
TEST(BillTest, PollingCostsWhatThePapersSay) {
  const Prices prices;
  Idling day{.lapse = absl::Hours(22), .interval = absl::Seconds(1), .calls_per_interval = 1};
  EXPECT_EQ(day.calls(), 79'200);
  EXPECT_EQ(ShowDollars(TransactionCost(day.calls() * kDaysOfAMonth, prices)), "$2.38");
  day.calls_per_interval = 200;
  EXPECT_EQ(ShowDollars(TransactionCost(day.calls() * kDaysOfAMonth, prices)), "$475.20");
}

TEST(BillTest, AddsUpTransactionsAndBusMessages) {
  Usage usage;
  usage.transactions[0] = {9'000, 500};
  usage.transactions[2] = {0, 500};
  usage.bus_messages = 500'000;
  Usage twice = usage;
  twice.Add(usage);
  EXPECT_EQ(twice.total(), 20'000);
  EXPECT_EQ(twice.wasted(), 2'000);
  EXPECT_DOUBLE_EQ(Cost(twice, {}), 0.02);
  EXPECT_DOUBLE_EQ(Cost(twice, {.per_10000_transactions = 0, .per_million_bus_messages = 2}), 2);
}

TEST(BillTest, ShowsFractionsOfACentWhereTheyMatter) {
  EXPECT_EQ(ShowDollars(0), "$0.00");
  EXPECT_EQ(ShowDollars(0.00012), "$0.000120");
  EXPECT_EQ(ShowDollars(0.5), "$0.50");
}

class UsageLogTest : public ::testing::Test {
 protected:
  const os::TempDir folder_;
  const std::string path_ = folder_ / "usage.jsonl";
};

TEST_F(UsageLogTest, IsEmptyWhereNothingRan) { EXPECT_TRUE(ReadUsage(path_)->empty()); }

TEST_F(UsageLogTest, ReadsBackEachRunInOrder) {
  RunUsage run;
  run.batch = 7;
  run.seconds = 1.5;
  run.partitions = 3;
  run.threads = 4;
  run.usage.transactions[1] = {10, 2};
  run.usage.transactions[10] = {0, 5};
  run.usage.wakeups_push = 8;
  run.usage.wakeups_safety = 9;
  run.usage.bus_messages = 11;
  ASSERT_TRUE(AppendUsage(path_, run).ok());
  run.batch = 8;
  ASSERT_TRUE(AppendUsage(path_, run).ok());
  const auto runs = ReadUsage(path_);
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 2u);
  const RunUsage& first = runs->front();
  EXPECT_EQ(first.batch, 7u);
  EXPECT_EQ(first.seconds, 1.5);
  EXPECT_EQ(first.partitions, 3);
  EXPECT_EQ(first.threads, 4);
  EXPECT_EQ(first.usage.transactions[1].useful, 10);
  EXPECT_EQ(first.usage.transactions[10].wasted, 5);
  EXPECT_EQ(first.usage.total(), 17);
  EXPECT_EQ(first.usage.wakeups_push, 8);
  EXPECT_EQ(first.usage.wakeups_safety, 9);
  EXPECT_EQ(first.usage.bus_messages, 11);
  EXPECT_EQ(runs->back().batch, 8u);
}

// As many runs as a machine makes that works through small batches day and night.
TEST_F(UsageLogTest, StaysBoundedAndKeepsTheNewestRunsWhole) {
  constexpr int64_t kBound = 4000;
  RunUsage run;
  uintmax_t most = 0;
  for (run.batch = 1; run.batch <= 500; ++run.batch) {
    run.usage.bus_messages = static_cast<int64_t>(run.batch);
    ASSERT_TRUE(AppendUsage(path_, run, kBound).ok());
    uintmax_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      bytes += file.file_size();
    }
    most = std::max(most, bytes);
  }
  EXPECT_LT(most, 2 * kBound + 1000);
  const auto runs = ReadUsage(path_);
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_GT(runs->size(), 10u);
  for (size_t i = 0; i < runs->size(); ++i) {
    const RunUsage& kept = (*runs)[i];
    EXPECT_EQ(kept.batch, 500 - (runs->size() - 1 - i)) << "in order, without a gap";
    EXPECT_EQ(kept.usage.bus_messages, kept.batch);
  }
}

TEST_F(UsageLogTest, KeepsNoRunForLongerThanTwoSpans) {
  const absl::Time begin = absl::FromUnixSeconds(1'700'000'000);
  for (uint64_t month = 1; month <= 40; ++month) {
    RunUsage run;
    run.batch = month;
    run.ended = begin + absl::Hours(24 * 30) * month;
    ASSERT_TRUE(AppendUsage(path_, run).ok());
    const auto runs = ReadUsage(path_);
    EXPECT_LE(run.ended - runs->front().ended, 2 * kMaxUsageAge);
    EXPECT_EQ(runs->back().ended, run.ended);
    EXPECT_GE(runs->size(), std::min<uint64_t>(month, 6)) << "half a year at least";
  }
}

TEST_F(UsageLogTest, ReadsALineOfAnOlderMusterWhichHasNoTime) {
  std::ofstream(path_) << R"({"batch":3,"seconds":1,"partitions":1,"threads":2,"transactions":{},)"
                       << R"("wakeups_push":0,"wakeups_safety":0,"bus_messages":5})"
                       << "\n";
  RunUsage run;
  run.batch = 4;
  run.ended = absl::FromUnixSeconds(1'700'000'000);
  ASSERT_TRUE(AppendUsage(path_, run).ok());
  const auto runs = ReadUsage(path_);
  ASSERT_EQ(runs->size(), 2u) << runs.status();
  EXPECT_EQ(runs->front().usage.bus_messages, 5);
  EXPECT_EQ(runs->front().ended, absl::UnixEpoch());
}

TEST_F(UsageLogTest, PassesOverWhatIsNoRun) {
  ASSERT_TRUE(AppendUsage(path_, {}).ok());
  std::ofstream(path_, std::ios::app) << "{\"batch\":3,\"sec";
  EXPECT_EQ(ReadUsage(path_)->size(), 1u);
}

}  // namespace

}  // namespace muster::queue
