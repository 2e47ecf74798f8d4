// SPDX-License-Identifier: Apache-2.0
#include "muster/item/queue_names.h"

#include <string>

#include "gtest/gtest.h"
#include "muster/base/names.h"

namespace muster::item {
namespace {

TEST(QueueNamesTest, KnowsWhichSideOfAJobAQueueIs) {
  for (const std::string job :
       {"retail", "check-out-retail", "check-in-3", "in", "out-0", "Upper case", "Sign-In-1!"}) {
    for (const int partition : {0, 7, 63}) {
      EXPECT_EQ(DirectionOf(InputQueue("a", job, partition).name), Direction::kInput) << job;
      EXPECT_EQ(DirectionOf(OutputQueue("a", job, partition).name), Direction::kOutput) << job;
    }
  }
}

TEST(QueueNamesTest, NamesPartitionsAsItAlwaysDid) {
  EXPECT_EQ(InputName("my_job"), "my_job-in");
  EXPECT_EQ(InputQueue("a", "retail", 7).name, "retail-in-7");
  EXPECT_EQ(OutputQueue("a", "retail", 0).name, "retail-out-0");
  EXPECT_EQ(InputQueue("a", "my_job", 0).name, base::MakeSafeName("my_job-in-0"));
}

TEST(QueueNamesTest, KnowsTheLogicalQueueOfAPartition) {
  EXPECT_EQ(LogicalName("retail-in-7"), "retail-in");
  EXPECT_EQ(LogicalName("check-out-retail-out-12"), "check-out-retail-out");
  EXPECT_EQ(LogicalName("orders"), "orders");
  EXPECT_EQ(LogicalInput("retail"), "retail-in");
  // The partitions of a job whose name is not safe share one, too.
  EXPECT_EQ(LogicalName(InputQueue("a", "my_job", 3).name), LogicalInput("my_job"));
  EXPECT_EQ(LogicalInput("my_job"), "my-job-in");
}

TEST(QueueNamesTest, SaysNothingOfQueuesThatNoJobNames) {
  for (const char* name : {"", "orders", "check-out-retail", "orders-in-", "orders-in-x", "in-0",
                           "orders-in-0-0123", "recovered-1"}) {
    EXPECT_EQ(DirectionOf(name), std::nullopt) << name;
  }
}

// The text at the cut belongs to the job's name and is not a direction.
TEST(QueueNamesTest, SaysNothingOfANameThatWasCut) {
  const std::string job = std::string(45, 'j') + "-in-3" + std::string(40, 'x');
  ASSERT_EQ(OutputQueue("a", job, 0).name.substr(0, 50), std::string(45, 'j') + "-in-3");
  EXPECT_EQ(DirectionOf(OutputQueue("a", job, 0).name), std::nullopt);
}

}  // namespace
}  // namespace muster::item
