// SPDX-License-Identifier: Apache-2.0
#include "muster/base/retry.h"

#include <climits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::base {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Runs a policy on its own thread over a service that fails as often as the test says.
class RetryPolicyTest : public ::testing::Test {
 protected:
  ~RetryPolicyTest() override {
    stop_.request_stop();
    if (runner_.joinable()) runner_.join();
  }

  void Start(RetryOptions options, int failures, absl::Status failure, double uniform = 1) {
    runner_ = std::thread([this, options, failures, failure, uniform] {
      RetryPolicy policy(options, &clock_, [uniform] { return uniform; });
      result_ = policy.Run(stop_.get_token(), [&](const RetryAttempt& attempt) -> absl::Status {
        timeouts_.push_back(attempt.timeout);
        return attempt.number <= failures ? failure : absl::OkStatus();
      });
    });
  }

  // Returns the policy's current wait, and lets that time pass.
  absl::Duration NextWait() {
    clock_.AwaitSleepers(1);
    const absl::Duration wait = clock_.NextDeadline() - clock_.Monotonic();
    clock_.Advance(wait);
    return wait;
  }

  absl::Status Result() {
    runner_.join();
    return result_;
  }

  FakeClock clock_;
  std::stop_source stop_;
  std::thread runner_;
  absl::Status result_;
  std::vector<absl::Duration> timeouts_;  // one per attempt
};

TEST_F(RetryPolicyTest, ReturnsTheFirstSuccess) {
  Start({}, 0, absl::OkStatus());
  EXPECT_TRUE(Result().ok());
  EXPECT_EQ(timeouts_.size(), 1u);
}

TEST_F(RetryPolicyTest, WaitsTwiceAsLongAfterEachTransientFault) {
  Start({.initial_backoff = absl::Milliseconds(100)}, 3, absl::UnavailableError("busy"));
  EXPECT_EQ(NextWait(), absl::Milliseconds(100));
  EXPECT_EQ(NextWait(), absl::Milliseconds(200));
  EXPECT_EQ(NextWait(), absl::Milliseconds(400));
  EXPECT_TRUE(Result().ok());
}

TEST_F(RetryPolicyTest, DrawsEachWaitFromItsUpperHalf) {
  Start({.initial_backoff = absl::Milliseconds(100)}, 1, absl::UnavailableError("busy"), 0);
  EXPECT_EQ(NextWait(), absl::Milliseconds(50));
}

TEST_F(RetryPolicyTest, GivesEachAttemptALongerTimeout) {
  Start({.initial_timeout = absl::Seconds(5), .max_timeout = absl::Seconds(15)}, 3,
        absl::DeadlineExceededError("slow"));
  for (int i = 0; i < 3; ++i) NextWait();
  EXPECT_TRUE(Result().ok());
  EXPECT_THAT(timeouts_, ElementsAre(absl::Seconds(5), absl::Seconds(10), absl::Seconds(15),
                                     absl::Seconds(15)));
}

TEST_F(RetryPolicyTest, GivesUpAfterItsLastAttempt) {
  Start({.max_attempts = 3}, 100, absl::ResourceExhaustedError("server busy"));
  NextWait();
  NextWait();
  const absl::Status status = Result();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gave up after attempt 3: server busy"));
  EXPECT_EQ(timeouts_.size(), 3u);
}

TEST_F(RetryPolicyTest, DoesNotRepeatWhatFailedForGood) {
  Start({}, 100, absl::DataLossError("corrupt"));
  EXPECT_EQ(Result(), absl::DataLossError("corrupt"));
  EXPECT_EQ(timeouts_.size(), 1u);
}

TEST_F(RetryPolicyTest, IsCancelledWhileItWaits) {
  Start({}, 100, absl::AbortedError("lost a race"));
  clock_.AwaitSleepers(1);
  stop_.request_stop();
  const absl::Status status = Result();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost a race"));
}

TEST_F(RetryPolicyTest, StaysWithinItsMaximaForManyAttempts) {
  Start({.max_attempts = 3000, .max_backoff = absl::Seconds(1)}, 2000,
        absl::UnavailableError("busy"));
  for (int i = 0; i < 2000; ++i) ASSERT_LE(NextWait(), absl::Seconds(1));
  EXPECT_TRUE(Result().ok());
  EXPECT_EQ(timeouts_.back(), absl::Minutes(1));
}

TEST_F(RetryPolicyTest, HandsOnTheValueOfASuccess) {
  RetryPolicy policy({}, &clock_);
  const absl::StatusOr<std::string> value =
      policy.Run([](const RetryAttempt&) { return absl::StatusOr<std::string>("done"); });
  EXPECT_EQ(*value, "done");
  EXPECT_EQ(policy
                .Run([](const RetryAttempt&) -> absl::StatusOr<std::string> {
                  return absl::NotFoundError("gone");
                })
                .status(),
            absl::NotFoundError("gone"));
}

TEST_F(RetryPolicyTest, ObeysAThrottleWithoutCountingIt) {
  Start({.max_attempts = 1}, 0, absl::OkStatus());
  EXPECT_TRUE(Result().ok());
  int throttled = 0;
  runner_ = std::thread([&] {
    RetryPolicy policy({.max_attempts = 1}, &clock_, [] { return 0; });
    result_ = policy.Run(stop_.get_token(), [&](const RetryAttempt& attempt) -> absl::Status {
      EXPECT_EQ(attempt.number, 1);
      return throttled++ < 20 ? Throttled("busy", absl::Milliseconds(70)) : absl::OkStatus();
    });
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(NextWait(), absl::Milliseconds(70));
  EXPECT_TRUE(Result().ok());
}

TEST_F(RetryPolicyTest, WaitsLongerAndWithJitterWhenItIsThrottledAgainAndAgain) {
  int throttled = 0;
  runner_ = std::thread([&] {
    RetryPolicy policy({.max_backoff = absl::Seconds(1)}, &clock_, [] { return 0.5; });
    result_ = policy.Run(stop_.get_token(), [&](const RetryAttempt&) -> absl::Status {
      return throttled++ < 5 ? Throttled("busy", absl::Milliseconds(200)) : absl::OkStatus();
    });
  });
  for (const int ms : {300, 400, 600, 700, 700}) EXPECT_EQ(NextWait(), absl::Milliseconds(ms));
  EXPECT_TRUE(Result().ok());
}

TEST_F(RetryPolicyTest, RepeatsOnlyWhatWasThrottledWhereRepeatingIsNotSafe) {
  RetryPolicy policy({}, &clock_);
  int calls = 0;
  const absl::Status failed = policy.RunWhileThrottled(stop_.get_token(), [&]() -> absl::Status {
    ++calls;
    return absl::UnavailableError("who knows");
  });
  EXPECT_TRUE(absl::IsUnavailable(failed));
  EXPECT_EQ(calls, 1);
}

TEST(RetryAfterTest, SurvivesAnnotation) {
  const absl::Status status = Annotate(Throttled("busy", absl::Seconds(3)), "putting");
  EXPECT_EQ(RetryAfter(status), absl::Seconds(3));
  EXPECT_EQ(status.message(), "putting: busy");
  EXPECT_EQ(RetryAfter(absl::ResourceExhaustedError("a limit")), std::nullopt);
}

TEST(ExponentialBackoffTest, DoublesWithEachFailureUpToItsMaximum) {
  const auto after = [](int failures) {
    return ExponentialBackoff(failures, absl::Milliseconds(100), absl::Seconds(1));
  };
  EXPECT_EQ(after(1), absl::Milliseconds(100));
  EXPECT_EQ(after(2), absl::Milliseconds(200));
  EXPECT_EQ(after(4), absl::Milliseconds(800));
  EXPECT_EQ(after(5), absl::Seconds(1));
  EXPECT_EQ(after(INT_MAX), absl::Seconds(1));
}

UniformSource Always(double value) {
  return [value] { return value; };
}

IdleBackoffOptions Between(absl::Duration minimum, absl::Duration maximum) {
  return {.minimum = minimum, .maximum = maximum};
}

TEST(IdleBackoffTest, DoublesItsStepWithEachEmptyLook) {
  IdleBackoff backoff(Between(absl::ZeroDuration(), absl::Hours(1)), Always(0));
  EXPECT_EQ(backoff.Interval(1), absl::Milliseconds(80));
  EXPECT_EQ(backoff.Interval(2), absl::Milliseconds(3 * 80));
  EXPECT_EQ(backoff.Interval(3), absl::Milliseconds(7 * 80));
}

TEST(IdleBackoffTest, DoesNotWaitWhileThereIsWork) {
  IdleBackoff backoff(Between(absl::ZeroDuration(), absl::Seconds(1)), Always(0.9));
  EXPECT_EQ(backoff.Interval(0), absl::ZeroDuration());
}

TEST(IdleBackoffTest, DrawsItsUnitFromEightyToOneHundredAndTwentyMilliseconds) {
  const IdleBackoffOptions options = Between(absl::ZeroDuration(), absl::Hours(1));
  EXPECT_EQ(IdleBackoff(options, Always(0.5)).Interval(1), absl::Milliseconds(100));
  IdleBackoff drawn(options);
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration interval = drawn.Interval(1);
    ASSERT_GE(interval, absl::Milliseconds(80));
    ASSERT_LT(interval, absl::Milliseconds(120));
  }
}

TEST(IdleBackoffTest, AddsTheMinimumAndStopsAtTheMaximum) {
  IdleBackoff backoff(Between(absl::Milliseconds(250), absl::Seconds(1)), Always(0.5));
  EXPECT_EQ(backoff.Interval(1), absl::Milliseconds(350));
  EXPECT_EQ(backoff.Interval(4), absl::Seconds(1));
}

// The papers' (int)(2^idle × 100) turned negative after some 25 empty polls, and the last
// poller died.
TEST(IdleBackoffTest, StaysAtTheMaximumAfterYearsOfIdling) {
  IdleBackoff backoff(Between(absl::ZeroDuration(), absl::Seconds(1)), Always(0.999));
  for (int idle = 4; idle < 5000; ++idle) {
    ASSERT_EQ(backoff.Interval(idle), absl::Seconds(1)) << "after " << idle << " empty looks";
  }
  EXPECT_EQ(backoff.Interval(INT_MAX), absl::Seconds(1));
}

TEST(IdleBackoffTest, NeverLeavesItsBoundsWhateverTheCount) {
  const uint32_t seed = testing::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  IdleBackoff backoff(Between(absl::Milliseconds(5), absl::Minutes(10)), SeededUniform(seed));
  for (int i = 0; i < 10000; ++i) {
    const absl::Duration interval = backoff.Interval(static_cast<int>(random()));
    ASSERT_GE(interval, absl::Milliseconds(5));
    ASSERT_LE(interval, absl::Minutes(10));
  }
}

TEST(IdleBackoffTest, RepeatsItselfFromTheSameSeed) {
  IdleBackoff a(Between(absl::ZeroDuration(), absl::Hours(1)), SeededUniform(7));
  IdleBackoff b(Between(absl::ZeroDuration(), absl::Hours(1)), SeededUniform(7));
  for (int idle = 1; idle < 10; ++idle) EXPECT_EQ(a.Interval(idle), b.Interval(idle));
}

}  // namespace

}  // namespace muster::base
