// SPDX-License-Identifier: Apache-2.0
#include "cli/output/progress_bar.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunProgress HalfWay() {
  RunProgress progress;
  progress.read = 500'000;
  progress.queued = 400'000;
  progress.processed = 300'000;
  progress.committed = 250'000;
  progress.split = 0.5;
  return progress;
}

TEST(ProgressLineTest, ShowsEveryStationTheRateAndTheTimeLeft) {
  // Half of the input holds 500,000 transactions: the total is a million, and 750,000 are left.
  EXPECT_EQ(ProgressLine(HalfWay(), 250'000, false),
            " 25% · read 500,000 · queued 400,000 · processed 300,000 · committed 250,000"
            " · 250.0 k/s · 3 s left");
}

// A handler that rejects every record moves a batch along like one that works.
TEST(ProgressLineTest, ShowsWhatIsLostAlready) {
  RunProgress progress = HalfWay();
  progress.rejected = 1'200;
  EXPECT_EQ(ProgressLine(progress, 0, false),
            " 25% · read 500,000 · queued 400,000 · processed 300,000 · committed 250,000"
            " · rejected 1,200");
  progress.dead_lettered = 500;
  EXPECT_THAT(ProgressLine(progress, 250'000, false),
              HasSubstr(" · rejected 1,200 · dead-lettered 500 · 250.0 k/s"));
}

TEST(ProgressLineTest, DrawsABarForTerminals) {
  EXPECT_THAT(ProgressLine(HalfWay(), 0, true), HasSubstr("██████░░░░░░░░░░░░░░░░░░  25%"));
}

TEST(ProgressLineTest, SaysNothingOfTimeBeforeAnythingIsKnown) {
  EXPECT_THAT(ProgressLine(RunProgress{}, 0, false), Not(HasSubstr("left")));
}

TEST(ProgressBarTest, WritesPlainLinesWhereThereIsNoTerminal) {
  base::FakeClock clock;
  std::ostringstream out;
  ProgressBar bar({.terminal = false, .interval = absl::Seconds(2)}, HalfWay, &out, &clock);
  clock.AwaitSleepers(1);
  clock.Advance(absl::Seconds(2));
  clock.AwaitSleepers(1);
  bar.Finish();
  EXPECT_THAT(out.str(), HasSubstr("25%"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
}

TEST(ProgressBarTest, WritesNoLineAgainWhereThereIsNoTerminal) {
  base::FakeClock clock;
  std::ostringstream out;
  ProgressBar bar({.terminal = false, .interval = absl::Seconds(2)}, HalfWay, &out, &clock);
  for (int interval = 0; interval < 3; ++interval) {
    clock.AwaitSleepers(1);
    clock.Advance(absl::Seconds(2));
  }
  clock.AwaitSleepers(1);
  bar.Finish();
  EXPECT_EQ(out.str(),
            " 25% · read 500,000 · queued 400,000 · processed 300,000 · committed 250,000\n");
}

TEST(ProgressBarTest, CountsOnlyItsOwnRunAsSpeed) {
  base::FakeClock clock;
  std::ostringstream out;
  // An earlier run committed 250,000: this run has committed none yet.
  ProgressBar bar({.terminal = false, .interval = absl::Seconds(2)}, HalfWay, &out, &clock);
  clock.Advance(absl::Seconds(1));
  bar.Finish();
  EXPECT_THAT(out.str(), Not(HasSubstr("/s")));
}

TEST(ProgressBarTest, ShowsNothingAsLongAsNothingIsKnown) {
  for (const bool terminal : {false, true}) {
    base::FakeClock clock;
    std::ostringstream out;
    ProgressBar bar(
        {.terminal = terminal}, [] { return std::nullopt; }, &out, &clock);
    clock.AwaitSleepers(1);
    clock.Advance(absl::Seconds(1));
    bar.Finish();
    EXPECT_EQ(out.str(), "");
  }
}

TEST(ProgressBarTest, TakesWhatIsKnownFirstForTheWorkOfOthers) {
  base::FakeClock clock;
  std::ostringstream out;
  bool known = false;
  ProgressBar bar(
      {.terminal = false, .interval = absl::Hours(1)},
      [&known] { return known ? std::optional<RunProgress>(HalfWay()) : std::nullopt; }, &out,
      &clock);
  clock.AwaitSleepers(1);
  clock.Advance(absl::Seconds(1));
  known = true;
  bar.Finish();
  EXPECT_THAT(out.str(), HasSubstr("25%"));
  EXPECT_THAT(out.str(), Not(HasSubstr("/s")));
}

TEST(ProgressBarTest, FinishingTwiceIsFine) {
  base::FakeClock clock;
  std::ostringstream out;
  ProgressBar bar(
      {}, [] { return RunProgress{}; }, &out, &clock);
  bar.Finish();
  const std::string once = out.str();
  bar.Finish();
  EXPECT_EQ(out.str(), once);
}

}  // namespace
}  // namespace muster::cli
