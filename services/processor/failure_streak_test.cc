// SPDX-License-Identifier: Apache-2.0

// Handlers that fail on each item: when that is told, and that it ends with the first result.
#include "services/processor/failure_streak.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::processor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FailureStreakTest : public ::testing::Test {
 protected:
  void Note(const handler::Outcome& outcome) {
    streak_.Note("billing", absl::StrCat("1/", ++items_), outcome, now_, &health_);
  }
  void Fail(int64_t times) {
    for (int64_t i = 0; i < times; ++i) Note(handler::Outcome::Retry({}, "no such column"));
  }

  base::LogCapture log_;
  handler::HealthTroubles health_;
  FailureStreak streak_;
  int items_ = 0;
  absl::Duration now_ = absl::Hours(1);
};

TEST_F(FailureStreakTest, IsTroubleUntilAnAttemptHasAResult) {
  Fail(kFailuresUntilTold - 1);
  EXPECT_EQ(health_.why(), "");
  Fail(1);
  EXPECT_EQ(health_.why(),
            "its last 10 attempts gave no result; the latest, at item 1/10: no such column");
  EXPECT_THAT(log_.lines(), ElementsAre(AllOf(HasSubstr("level=warning"), HasSubstr("job=billing"),
                                              HasSubstr("no such column"))));
  Note(handler::Outcome::Ok());
  EXPECT_EQ(health_.why(), "");
}

TEST_F(FailureStreakTest, CountsFromTheLastResult) {
  Fail(kFailuresUntilTold - 1);
  Note(handler::Outcome::Ok());
  Fail(kFailuresUntilTold - 1);
  EXPECT_EQ(health_.why(), "");
  EXPECT_THAT(log_.lines(), IsEmpty());
}

// Whoever watches is told of each change of the words.
TEST_F(FailureStreakTest, IsToldAgainOnlyWhenTheAttemptsHaveDoubled) {
  Fail(kFailuresUntilTold * 2 - 1);
  EXPECT_THAT(health_.why(), HasSubstr("its last 10 attempts"));
  Fail(1);
  EXPECT_THAT(health_.why(), HasSubstr("its last 20 attempts"));
  EXPECT_THAT(log_.lines(), SizeIs(2));
}

// A program answers, so that it works as far as its health knows.
TEST_F(FailureStreakTest, StaysThoughTheHandlerAnswers) {
  Fail(kFailuresUntilTold);
  health_.Works();
  EXPECT_THAT(health_.why(), HasSubstr("no such column"));
}

TEST_F(FailureStreakTest, LeavesOutWhatWasStopped) {
  for (int64_t i = 0; i < kFailuresUntilTold; ++i) Note(handler::Outcome::Release());
  EXPECT_EQ(health_.why(), "");
}

// A handler that waits for its rates was said to fail.
TEST_F(FailureStreakTest, CallsItNoFailureThatItemsArePutOff) {
  for (int64_t i = 1; i < kFailuresUntilTold; ++i) {
    Fail(1);
    Note(handler::Outcome::Defer({}, "the rates are not there"));
  }
  EXPECT_EQ(health_.why(), "");
  now_ += kDeferralsUntilTold;
  Note(handler::Outcome::Defer({}, "the rates are not there"));
  EXPECT_EQ(health_.why(),
            "it put off 10 attempts, with no result between them; the latest, at item 1/19: "
            "the rates are not there");
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("a handler puts off each item")));
  Note(handler::Outcome::Ok());
  EXPECT_EQ(health_.why(), "");
}

// It was called broken and whole again several times a second.
TEST_F(FailureStreakTest, LeavesAHandlerAloneThatBoundsItsRateByDeferrals) {
  for (int second = 0; second < 60; ++second) {
    for (int64_t i = 0; i < 2 * kFailuresUntilTold; ++i) {
      Note(handler::Outcome::Defer({}, "the backend takes one a second"));
    }
    now_ += absl::Seconds(1);
    Note(handler::Outcome::Ok());
  }
  EXPECT_THAT(log_.lines(), IsEmpty());
}

}  // namespace
}  // namespace muster::processor
