#include "muster/scaling_rules/queue_names.h"

#include "gtest/gtest.h"

namespace muster::scaling_rules {
namespace {

TEST(QueueNamesTest, ANameMeansItsQueueAndItsPartitions) {
  EXPECT_TRUE(Means("retail-in-0", "retail-in-0"));
  EXPECT_TRUE(Means("retail-in", "retail-in-0"));
  EXPECT_TRUE(Means("retail-in", "retail-in-12"));
  EXPECT_FALSE(Means("retail-in", "retail-in-"));
  EXPECT_FALSE(Means("retail-in", "retail-in-x"));
  EXPECT_FALSE(Means("retail-in", "retail-inn-0"));
  EXPECT_FALSE(Means("retail-in", "retail-in-0-1"));
  EXPECT_FALSE(Means("retail-in", "retail-out-0"));
  EXPECT_FALSE(Means("retail-in-0", "retail-in"));
}

}  // namespace
}  // namespace muster::scaling_rules
