// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/restart_backoff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/actuator/process/limits.h"

namespace muster::actuator::process {

namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kAtOnce = absl::Milliseconds(3);

class RestartBackoffTest : public ::testing::Test {
 protected:
  // Simulates a start and its failure after `ran`. Returns the wait before the next start.
  absl::Duration FailAfter(absl::Duration ran) {
    now_ += restraint_.WaitAt(now_);
    restraint_.OnStart(now_);
    now_ += ran;
    restraint_.OnFailure(ran, "why", now_);
    return restraint_.WaitAt(now_);
  }

  RestartBackoff restraint_;
  absl::Duration now_ = absl::Hours(1);
};

TEST_F(RestartBackoffTest, HoldsNobodyBackWhoHasNotFailed) {
  EXPECT_EQ(restraint_.WaitAt(now_), absl::ZeroDuration());
  EXPECT_EQ(restraint_.Tell(now_), "");
}

TEST_F(RestartBackoffTest, WaitsLongerWithEachFailureAndNeverLongerThanItsBound) {
  absl::Duration before;
  for (int i = 0; i < 9; ++i) {
    const absl::Duration wait = FailAfter(kAtOnce);
    EXPECT_GT(wait, before);
    before = wait;
  }
  for (int i = 0; i < 100; ++i) EXPECT_LE(FailAfter(kAtOnce), kMaxRestartWait);
}

TEST_F(RestartBackoffTest, BeginsAnewWithOneThatWasWell) {
  for (int i = 0; i < 9; ++i) FailAfter(kAtOnce);
  EXPECT_LT(FailAfter(kWellAfter), absl::Seconds(1));
  EXPECT_THAT(restraint_.Tell(now_), HasSubstr("failure of 1 in a row"));
}

TEST_F(RestartBackoffTest, CountsThoseThatFailTogetherOnce) {
  const absl::Duration wait = FailAfter(kAtOnce);
  for (int i = 0; i < 50; ++i) restraint_.OnFailure(kAtOnce, "too", now_);
  EXPECT_EQ(restraint_.WaitAt(now_), wait);
}

TEST_F(RestartBackoffTest, TellsOfTheLastFailureUntilItIsLongAgo) {
  FailAfter(kAtOnce);
  EXPECT_THAT(restraint_.Tell(now_), HasSubstr("why; the next start is in"));
  now_ += restraint_.WaitAt(now_);
  restraint_.OnStart(now_);
  EXPECT_THAT(restraint_.Tell(now_), HasSubstr("in a row: why"));
  EXPECT_EQ(restraint_.Tell(now_ + kWellAfter), "");
}

TEST_F(RestartBackoffTest, RemembersWhyAProgramCannotBeExecuted) {
  restraint_.OnRefusal(absl::PermissionDeniedError("may not"), now_);
  EXPECT_EQ(restraint_.refusal(), absl::PermissionDeniedError("may not"));
  EXPECT_GT(restraint_.WaitAt(now_), absl::ZeroDuration());
  restraint_.OnStart(now_);
  EXPECT_TRUE(restraint_.refusal().ok());
}

}  // namespace

}  // namespace muster::actuator::process
