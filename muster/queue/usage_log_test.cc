#include "muster/queue/usage_log.h"

#include <fstream>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::queue {
namespace {

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

TEST_F(UsageLogTest, PassesOverWhatIsNoRun) {
  ASSERT_TRUE(AppendUsage(path_, {}).ok());
  std::ofstream(path_, std::ios::app) << "{\"batch\":3,\"sec";
  EXPECT_EQ(ReadUsage(path_)->size(), 1u);
}

}  // namespace
}  // namespace muster::queue
