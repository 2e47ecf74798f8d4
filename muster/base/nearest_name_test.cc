#include "muster/base/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::base {
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

// A name of the input may hold what a terminal obeys (U+009B begins a command), or be cut in the
// middle of a character: neither may reach a log.
TEST(QuotedTest, IsPrintableUtf8WhateverTheTextWas) {
  EXPECT_EQ(Quoted("\xC2\x9B"
                   "31m"),
            R"('\xc2\x9b31m')");
  EXPECT_EQ(Quoted("\u2028"), R"('\xe2\x80\xa8')");
  EXPECT_EQ(Quoted("\xFF"), R"('\xff')");
  EXPECT_EQ(Quoted(std::string(79, 'x') + "éa"), "'" + std::string(79, 'x') + "…'");
  EXPECT_EQ(Quoted(std::string(78, 'x') + "é"), "'" + std::string(78, 'x') + "é'");
}

TEST(ListNamesTest, StopsAtSome) {
  EXPECT_EQ(ListNames(kNames), "'measures', 'keys', 'name'");
  const std::string many = ListNames(std::vector<std::string>(100, "a"));
  EXPECT_EQ(many.substr(many.size() - 20), "'a', 'a' and 70 more") << many;
}

}  // namespace
}  // namespace muster::base
