// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/rules.h"

#include <string>

#include "gtest/gtest.h"
#include "muster/base/names.h"

namespace muster::scaling::rules {
namespace {

TEST(QueueNamesTest, ANameMeansItsQueueAndItsPartitions) {
  EXPECT_TRUE(MatchesQueue("retail-in-0", "retail-in-0"));
  EXPECT_TRUE(MatchesQueue("retail-in", "retail-in-0"));
  EXPECT_TRUE(MatchesQueue("retail-in", "retail-in-12"));
  EXPECT_FALSE(MatchesQueue("retail-in", "retail-in-"));
  EXPECT_FALSE(MatchesQueue("retail-in", "retail-in-x"));
  EXPECT_FALSE(MatchesQueue("retail-in", "retail-inn-0"));
  EXPECT_FALSE(MatchesQueue("retail-in", "retail-in-0-1"));
  EXPECT_FALSE(MatchesQueue("retail-in", "retail-out-0"));
  EXPECT_FALSE(MatchesQueue("retail-in-0", "retail-in"));
}

TEST(QueueNamesTest, ANameThatNoQueueCanHaveMeansThoseThatAreMadeOfIt) {
  const std::string first = base::PartitionName("my_job-in", 0);
  ASSERT_NE(first, "my_job-in-0");
  EXPECT_TRUE(MatchesQueue("my_job-in", first));
  EXPECT_TRUE(MatchesQueue("my_job-in", base::PartitionName("my_job-in", 63)));
  EXPECT_TRUE(MatchesQueue("my_job-in-0", first));
  EXPECT_TRUE(MatchesQueue(first, first));
  EXPECT_TRUE(MatchesQueue("my_job-in", "my_job-in-0")) << "as people write it";
  EXPECT_FALSE(MatchesQueue("my_job-in-1", first));
  EXPECT_FALSE(MatchesQueue("my-job-in", first));
  EXPECT_FALSE(MatchesQueue("my__job-in", first));
  EXPECT_FALSE(MatchesQueue("my_job-in", "my-job-in-0"));
  EXPECT_FALSE(MatchesQueue("my_job-in", "my-job-in-0-0123456789ab"));
  EXPECT_FALSE(MatchesQueue("my_job-in", "my-job-in-99999999999999999999-0123456789ab"));
}

}  // namespace
}  // namespace muster::scaling::rules
