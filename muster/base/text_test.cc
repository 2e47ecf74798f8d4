// SPDX-License-Identifier: Apache-2.0
#include "muster/base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::base {

namespace {

TEST(Utf8Test, AcceptsTheFirstAndLastCharacterOfEachLength) {
  for (const char* text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
                           "naïve café, 数, 🐕, and plain text around"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
  EXPECT_TRUE(IsValidUtf8(absl::string_view("\0", 1)));
}

TEST(Utf8Test, RefusesWhatNoEncoderWrites) {
  for (const char* text : {
           "\x80",              // continues nothing
           "\xc3",              // cut off
           "\xe2\x82",          //
           "\xc0\xaf",          // overlong
           "\xe0\x9f\xbf",      //
           "\xf0\x8f\xbf\xbf",  //
           "\xed\xa0\x80",      // surrogate
           "\xf4\x90\x80\x80",  // above U+10FFFF
           "\xff",              //
           "12345678\xc3"       // behind eight good bytes
       }) {
    EXPECT_FALSE(IsValidUtf8(text));
  }
}

TEST(Utf8Test, NamesTheByteAtWhichATextStopsBeingUtf8) {
  EXPECT_EQ(FirstInvalidUtf8(""), 0u);
  EXPECT_EQ(FirstInvalidUtf8("eight bytes, and é"), 19u);
  EXPECT_EQ(FirstInvalidUtf8("eight bytes, \xff and more"), 13u);
  EXPECT_EQ(FirstInvalidUtf8("é and a half: \xc3"), 15u);
}

TEST(Utf8Test, DoesNotCountControlCharactersAsPrintable) {
  EXPECT_EQ(PrintableUtf8Prefix("é"), 2u);
  EXPECT_EQ(PrintableUtf8Prefix(" "), 1u);
  for (const char* control : {"\n", "\x1b", "\x7f", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"}) {
    EXPECT_EQ(PrintableUtf8Prefix(control), 0u);
    EXPECT_GT(Utf8Prefix(control), 0u);
  }
}

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

// A name in the input may contain terminal controls (U+009B begins a command), or end in the middle
// of a character: a log must contain neither.
TEST(QuotedTest, IsPrintableUtf8WhateverTheTextWas) {
  EXPECT_EQ(Quoted("\xC2\x9B"
                   "31m"),
            R"('\xc2\x9b31m')");
  EXPECT_EQ(Quoted("\u2028"), R"('\xe2\x80\xa8')");
  EXPECT_EQ(Quoted("\xFF"), R"('\xff')");
  EXPECT_EQ(Quoted(std::string(79, 'x') + "éa"), "'" + std::string(79, 'x') + "…'");
  EXPECT_EQ(Quoted(std::string(78, 'x') + "é"), "'" + std::string(78, 'x') + "é'");
}

TEST(ShellQuotedTest, IsOneWordWhateverTheTextIs) {
  EXPECT_EQ(ShellQuoted("march 2011"), "'march 2011'");
  EXPECT_EQ(ShellQuoted("ada's $HOME"), R"('ada'\''s $HOME')");
}

TEST(ListNamesTest, StopsAtSome) {
  EXPECT_EQ(ListNames(kNames), "'measures', 'keys', 'name'");
  const std::string many = ListNames(std::vector<std::string>(100, "a"));
  EXPECT_EQ(many.substr(many.size() - 20), "'a', 'a' and 70 more") << many;
}

}  // namespace

}  // namespace muster::base
