#include "muster/base/backoff.h"

#include <climits>
#include <random>

#include "gtest/gtest.h"
#include "tests/fakes/base/seed.h"

namespace muster::base {
namespace {

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

// D1: the papers' (int)(2^idle × 100) turned negative after some 25 looks, and the last poller
// died.
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
