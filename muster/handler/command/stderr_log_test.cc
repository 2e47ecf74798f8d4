// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/stderr_log.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::handler::command {

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class StderrLogTest : public testing::Test {
 protected:
  StderrLogTest() { log_.SetItem("1/7"); }

  base::LogCapture capture_;
  base::FakeClock clock_;
  StderrLog log_{&clock_};
};

TEST_F(StderrLogTest, LogsEachLineWithItsItem) {
  log_.Append("first\nsecond line\n");
  log_.SetItem("1/8");
  log_.Append("third\r\n");
  EXPECT_THAT(capture_.lines(),
              ElementsAre(AllOf(HasSubstr("item=1/7"), HasSubstr("line=first")),
                          AllOf(HasSubstr("item=1/7"), HasSubstr("line=\"second line\"")),
                          AllOf(HasSubstr("item=1/8"), HasSubstr("line=third"))));
}

TEST_F(StderrLogTest, JoinsALineThatComesInPieces) {
  log_.Append("one ");
  log_.Append("line");
  EXPECT_TRUE(capture_.lines().empty());
  log_.EndLine();
  EXPECT_THAT(capture_.lines(), ElementsAre(HasSubstr("line=\"one line\"")));
}

TEST_F(StderrLogTest, CutsLongLines) {
  for (int i = 0; i < 10; ++i) log_.Append(std::string(1000, 'x'));
  log_.Append("\nnext\n");
  EXPECT_THAT(capture_.lines(), ElementsAre(HasSubstr(std::string(StderrLog::kMaxLineBytes, 'x')),
                                            HasSubstr("line=next")));
  EXPECT_LT(capture_.lines()[0].size(), StderrLog::kMaxLineBytes + 200);
}

TEST_F(StderrLogTest, LogsOnlySoManyLinesPerWindowAndTellsHowManyItLeftOut) {
  for (int i = 0; i < StderrLog::kMaxLines + 5; ++i) log_.Append(absl::StrCat("line ", i, "\n"));
  EXPECT_EQ(capture_.lines().size(), static_cast<size_t>(StderrLog::kMaxLines));
  clock_.Advance(StderrLog::kWindow);
  log_.Append("after\n");
  ASSERT_EQ(capture_.lines().size(), static_cast<size_t>(StderrLog::kMaxLines) + 2);
  EXPECT_THAT(capture_.lines()[StderrLog::kMaxLines], HasSubstr("lines_left_out=5"));
  EXPECT_THAT(capture_.lines().back(), HasSubstr("line=after"));
}

TEST_F(StderrLogTest, KeepsTheLastLinesWhileItIsQuietAndTellsAfterwardsHowManyItLeftOut) {
  log_.SetQuiet(true);
  log_.Append("boom\nboom again\n");
  log_.EndLine();
  EXPECT_TRUE(capture_.lines().empty());
  EXPECT_EQ(log_.LastLines(), "boom | boom again");
  log_.SetQuiet(false);
  log_.Append("after\n");
  EXPECT_THAT(capture_.lines(),
              ElementsAre(HasSubstr("lines_left_out=2"), HasSubstr("line=after")));
}

TEST_F(StderrLogTest, TellsHowManyItLeftOutWhenTheProgramEnds) {
  for (int i = 0; i < StderrLog::kMaxLines + 5; ++i) log_.Append(absl::StrCat("line ", i, "\n"));
  log_.EndLine();
  EXPECT_THAT(capture_.lines().back(), HasSubstr("lines_left_out=5"));
  log_.EndLine();
  EXPECT_EQ(capture_.lines().size(), static_cast<size_t>(StderrLog::kMaxLines) + 1);
}

// An exception of a Python handler took some seventy lines of the log, eight for each attempt.
TEST_F(StderrLogTest, MakesOneLineOfATracebackWithItsCauseFirst) {
  log_.Append(
      "before\n"
      "Traceback (most recent call last):\n"
      "  File \"bill.py\", line 9, in <module>\n    main()\n"
      "  File \"bill.py\", line 5, in main\n    bill(line)\n"
      "  File \"bill.py\", line 3, in bill\n    price(line)\n"
      "  File \"bill.py\", line 1, in price\n    return int(line)\n");
  EXPECT_THAT(capture_.lines(), ElementsAre(HasSubstr("line=before")));
  log_.Append("ValueError: invalid literal\nafter\n");
  ASSERT_EQ(capture_.lines().size(), 3u);
  EXPECT_THAT(capture_.lines()[1],
              AllOf(HasSubstr("item=1/7"), HasSubstr("line=\"ValueError: invalid literal\""),
                    HasSubstr("line 5, in main | bill(line) | "),
                    HasSubstr("in price | return int(line)\""), Not(HasSubstr("<module>"))));
  EXPECT_THAT(capture_.lines()[2], HasSubstr("line=after"));
  EXPECT_THAT(log_.LastLines(), HasSubstr("ValueError: invalid literal | after"));
}

TEST_F(StderrLogTest, BoundsATracebackWhateverItIsMadeOf) {
  log_.Append("Traceback (most recent call last):\n");
  for (int i = 0; i < 1000; ++i) log_.Append(absl::StrCat("  ", std::string(2000, 'x'), i, "\n"));
  EXPECT_TRUE(capture_.lines().empty());
  log_.Append("Traceback (most recent call last):\n  in f\n");
  log_.EndLine();
  ASSERT_EQ(capture_.lines().size(), 2u);
  EXPECT_LT(capture_.lines()[0].size(), StderrLog::kTracebackBytes + 200);
  EXPECT_THAT(capture_.lines()[1],
              AllOf(HasSubstr("line=\"a traceback without its end\""), HasSubstr("\"in f\"")));
}

TEST_F(StderrLogTest, RemembersTheLastLinesThatAreNotBlank) {
  log_.Append("one\nTraceback\n in f\nValueError: x\n\n  \n");
  EXPECT_EQ(log_.LastLines(), "Traceback |  in f | ValueError: x");
  log_.Forget();
  EXPECT_EQ(log_.LastLines(), "");
}

// So that a cause names the line of the program at which it failed.
TEST_F(StderrLogTest, RemembersNoMarksBelowASourceLine) {
  log_.Append(
      "Traceback (most recent call last):\n  File \"bill.py\", line 4, in price\n"
      "    return float(text)\n           ^^^^^^^^^^~~\nValueError: x\n");
  EXPECT_EQ(log_.LastLines(),
            "  File \"bill.py\", line 4, in price |     return float(text) | ValueError: x");
}

TEST_F(StderrLogTest, CutsWhatItRemembersAtItsBeginningAndWithinNoCharacter) {
  std::string umlauts;
  for (size_t i = 0; i < StderrLog::kLastBytes; ++i) umlauts += "ä";
  log_.Append(umlauts + "b\n");
  const std::string last = log_.LastLines();
  EXPECT_THAT(last, testing::StartsWith("…ä"));
  EXPECT_THAT(last, testing::EndsWith("äb"));
  EXPECT_LE(last.size(), StderrLog::kLastBytes + 3);
}

}  // namespace

}  // namespace muster::handler::command
