// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/outcome.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(OutcomeTest, SaysWhyTheFirstItemWasGivenUpAndWhatListsTheRest) {
  Outcome outcome;
  outcome.batch = 7;
  outcome.counted.items_dead = 3;
  report::ItemRow dead;
  dead.index = 4;
  dead.cause = "rate.py: no rates\nfor XX";
  outcome.first_dead = dead;
  EXPECT_EQ(outcome.Losses({}, " --data-dir d"),
            "3 items were given up: muster batch dead-letters 7 --data-dir d\n"
            "  item 4, the first of them: rate.py: no rates?for XX\n");
  outcome.counted.items_dead = 1;
  outcome.first_dead->cause = std::string(5000, 'x');
  EXPECT_THAT(outcome.Losses({}, ""),
              ::testing::StartsWith("1 item was given up: muster batch dead-letters 7\n"
                                    "  item 4: xxx"));
  EXPECT_LT(outcome.Losses({}, "").size(), 400u);
}

TEST(OutcomeTest, SaysNoDurationWhereTheClockWasSetBack) {
  Outcome outcome;
  outcome.batch = 7;
  outcome.counted.items_counted = 2;
  outcome.seconds = 4;
  outcome.transactions_per_second = 1500;
  EXPECT_THAT(outcome.Text(), EndsWith("\n2 items in 4.00 s, 1,500 transactions/s\n"));
  outcome.seconds = outcome.transactions_per_second = 0;
  EXPECT_THAT(outcome.Text(), EndsWith("\n2 items\n"));
}

TEST(OutcomeTest, SaysOfARunThatWentOnHowMuchOfTheBatchItsTimeIsFor) {
  Outcome outcome;
  outcome.batch = 7;
  outcome.counted.items_counted = 20;
  outcome.counted.transactions = 10'000;
  outcome.counted_before = 4'000;
  outcome.seconds = 4;
  outcome.transactions_per_second = 1500;
  EXPECT_THAT(
      outcome.Text(),
      EndsWith("\n20 items; this run: 6,000 transactions in 4.00 s, 1,500 transactions/s\n"));
}

TEST(OutcomeTest, WarnsOfRecordsOfSeveralLinesUnlessTheJobExpectsThem) {
  Outcome outcome;
  outcome.batch = 7;
  input::InputFormat input;
  EXPECT_EQ(outcome.MultilineWarning(input), "");
  outcome.multiline = {1, 32, {11}};
  EXPECT_THAT(outcome.Text(),
              HasSubstr("\n1 record spans several lines, 32 lines in all: it begins at line 11\n"));
  EXPECT_THAT(outcome.MultilineWarning(input),
              ::testing::StartsWith("warning: 1 record spans several lines, 32 lines in all: it "
                                    "begins at line 11. If stray quotes"));
  EXPECT_EQ(outcome.Json()["multiline_first_lines"].dump(), "[11]");
  outcome.multiline = {9, 20, {1, 4, 6, 8, 10}};
  EXPECT_THAT(outcome.MultilineWarning(input),
              HasSubstr("the first begin at lines 1, 4, 6, 8, 10"));
  outcome.multiline = {3, 6, {1, 4, 6}};  // a few
  EXPECT_EQ(outcome.MultilineWarning(input), "");
  EXPECT_THAT(outcome.Text(), HasSubstr("they begin at lines 1, 4, 6\n"));
  outcome.multiline = {1, 32, {11}};
  input.expects_multiline = true;
  EXPECT_EQ(outcome.MultilineWarning(input), "");
}

}  // namespace
}  // namespace muster::cli
