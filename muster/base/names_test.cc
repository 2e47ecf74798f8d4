// SPDX-License-Identifier: Apache-2.0
#include "muster/base/names.h"

#include <unistd.h>

#include <random>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::base {

namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

TEST(SafeNameTest, LeavesSafeNamesAlone) {
  for (const char* name : {"abc", "retail-input-07", "0-1", "a1b2c3"}) {
    EXPECT_EQ(MakeSafeName(name), name);
  }
  EXPECT_EQ(MakeSafeName(std::string(63, 'a')), std::string(63, 'a'));
}

TEST(SafeNameTest, KnowsWhatIsNotSafe) {
  for (const char* name : {"", "ab", "-abc", "abc-", "a--b", "Abc", "a/b", "a b", "a.b", "a_b"}) {
    EXPECT_FALSE(IsSafeName(name)) << name;
  }
  EXPECT_FALSE(IsSafeName(std::string(64, 'a')));
}

TEST(SafeNameTest, ResemblesWhatItWasMadeFrom) {
  EXPECT_THAT(MakeSafeName("Retail Orders (EU)"), MatchesRegex("retail-orders-eu-[0-9a-f]+"));
  EXPECT_THAT(MakeSafeName("--a//b--"), MatchesRegex("a-b-[0-9a-f]+"));
}

// Stored data is found by these names: a change of the rule would lose it.
TEST(SafeNameTest, MakesASafeNameOfEachPartition) {
  EXPECT_EQ(PartitionName("retail-in", 12), "retail-in-12");
  EXPECT_EQ(PartitionName("my_job-in", 0), MakeSafeName("my_job-in-0"));
  EXPECT_EQ(PartitionName(std::string(60, 'a'), 100), MakeSafeName(std::string(60, 'a') + "-100"));
}

TEST(SafeNameTest, KnowsWithWhatTheNamesOfAllThatBeginsAlikeBegin) {
  for (const std::string start :
       {"", "a", "retail-in", "my_job-in", "My_", "a--b", "_", "-", "9.", "\xc3\xa4_in"}) {
    for (const std::string& end : {std::string(), std::string("-0"), std::string("_-"),
                                   std::string("bc"), std::string(70, 'x')}) {
      EXPECT_THAT(MakeSafeName(start + end), ::testing::StartsWith(SafeStart(start)))
          << start << end;
    }
  }
}

TEST(SafeNameTest, IsStableForever) {
  EXPECT_EQ(MakeSafeName("Orders"), "orders-b7e8acdd522e");
  EXPECT_EQ(MakeSafeName(""), "e3b0c44298fc");
}

TEST(SafeNameTest, KeepsChangedNamesApart) {
  std::set<std::string> names;
  for (const char* text :
       {"Orders", "orders", "ORDERS", "orders!", "orders?", "", "-", "--", "é"}) {
    EXPECT_TRUE(names.insert(MakeSafeName(text)).second) << text;
  }
  EXPECT_NE(MakeSafeName(std::string(64, 'a')), MakeSafeName(std::string(65, 'a')));
}

TEST(SafeNameTest, MakesASafeNameOfAnyBytes) {
  const uint32_t seed = testing::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 5000; ++i) {
    std::string text(random() % 100, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string name = MakeSafeName(text);
    ASSERT_TRUE(IsSafeName(name)) << name;
    ASSERT_EQ(MakeSafeName(name), name);
  }
}

TEST(InstanceIdTest, StartsWithTheRoleAndNamesTheProcess) {
  EXPECT_THAT(MakeInstanceId("Scaling Agent"),
              ::testing::MatchesRegex("scaling-agent-[a-z0-9-]+-" + std::to_string(getpid()) +
                                      "-[0-9a-f]+"));
}

TEST(InstanceIdTest, IsNeverTheSameTwice) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ids.insert(MakeInstanceId("processor")).second);
}

}  // namespace

}  // namespace muster::base
