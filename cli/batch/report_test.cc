// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/report.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// What is written of a report with one group, "by_name", of so many rows.
std::string Written(int rows, const ReportRequest& request) {
  const auto read = [rows](const report::RowVisitor& visitor) {
    const absl::Status begun = visitor.on_group({"by_name", {"name"}, {}});
    for (int row = 0; row < rows; ++row) visitor.on_row({{absl::StrCat("name ", row)}, {}});
    return begun;
  };
  std::ostringstream out;
  const absl::Status written = WriteReport(read, request, out);
  EXPECT_TRUE(written.ok()) << written;
  return out.str();
}

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

TEST(ReportWriterTest, SaysWithTheDataDirectoryHowToSeeTheRowsThatItLeavesOut) {
  const ReportRequest request{7, "", OutputFormat::kTable, 2, " --data-dir 'd'"};
  const std::string cut = Written(5, request);
  EXPECT_THAT(cut, EndsWith("… and 3 more: muster report 7 --group by_name --data-dir 'd'\n"));
  EXPECT_THAT(cut, Not(HasSubstr("name 2")));
  EXPECT_THAT(Written(2, request), Not(HasSubstr("more")));
}

TEST(ReportWriterTest, LeavesNothingOutUnlessItIsAsked) {
  EXPECT_THAT(Written(50, {7, "", OutputFormat::kTable}), HasSubstr("name 49"));
}

TEST(ReportWriterTest, WritesTheSameAsYamlAsItDoesAsJson) {
  EXPECT_EQ(Written(2, {7, "", OutputFormat::kYaml}),
            "batch: 7\ngroups:\n  - name: by_name\n    rows:\n      - name: \"name 0\"\n"
            "      - name: \"name 1\"\n");
  EXPECT_EQ(Written(0, {7, "", OutputFormat::kYaml}),
            "batch: 7\ngroups:\n  - name: by_name\n    rows: []\n");
  EXPECT_EQ(Written(1, {7, "", OutputFormat::kJson}),
            "{\"batch\":7,\"groups\":[{\"name\":\"by_name\",\"rows\":[{\"name\":\"name 0\"}]}]}\n");
}

}  // namespace
}  // namespace muster::cli
