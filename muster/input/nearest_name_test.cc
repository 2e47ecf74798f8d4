#include "muster/input/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::input {
namespace {

const std::vector<std::string> kNames = {"measures", "keys", "name"};

TEST(NearestNameTest, ForgivesAFewSlips) {
  EXPECT_EQ(NearestName("measurs", kNames), "measures");
  EXPECT_EQ(NearestName("Keys", kNames), "keys");
  EXPECT_EQ(NearestName("nmae", kNames), "name");
}

TEST(NearestNameTest, DoesNotGuessWildly) {
  EXPECT_EQ(NearestName("partitions", kNames), "");
  EXPECT_EQ(NearestName("x", kNames), "");
  EXPECT_EQ(DidYouMean("x", kNames), "");
  EXPECT_EQ(DidYouMean("key", kNames), "; did you mean 'keys'?");
}

TEST(QuotedTest, CutsAndEscapesWhatComesFromOutside) {
  EXPECT_EQ(Quoted("a\nb"), "'a\\nb'");
  EXPECT_EQ(Quoted("é"), "'é'");
  EXPECT_EQ(Quoted(std::string(500, 'x')), "'" + std::string(80, 'x') + "…'");
}

TEST(ListNamesTest, StopsAtSome) {
  EXPECT_EQ(ListNames(kNames), "'measures', 'keys', 'name'");
  const std::string many = ListNames(std::vector<std::string>(100, "a"));
  EXPECT_EQ(many.substr(many.size() - 20), "'a', 'a' and 70 more") << many;
}

}  // namespace
}  // namespace muster::input
