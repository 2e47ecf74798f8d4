// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/throttle/request_throttle.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::queue_gateway::throttle {
namespace {

constexpr absl::Duration kNow = absl::ZeroDuration();

class RequestThrottleTest : public ::testing::Test {
 protected:
  static int CountAdmitted(RequestThrottle* throttle, const std::string& queue, int tries) {
    int admitted = 0;
    for (int i = 0; i < tries; ++i) admitted += throttle->Admit("sally", queue) == kNow ? 1 : 0;
    return admitted;
  }

  base::FakeClock clock_;
};

TEST_F(RequestThrottleTest, RefusesNothingUnlessThereIsATarget) {
  RequestThrottle throttle({}, &clock_);
  EXPECT_EQ(CountAdmitted(&throttle, "q", 10'000), 10'000);
  EXPECT_EQ(throttle.remembered(), 0U);
}

TEST_F(RequestThrottleTest, AdmitsASecondsWorthAtOnceAndThenAtTheTargetsPace) {
  RequestThrottle throttle({.per_queue = 500}, &clock_);
  EXPECT_EQ(CountAdmitted(&throttle, "q", 1000), 500);
  clock_.Advance(absl::Milliseconds(2) - absl::Nanoseconds(1));
  EXPECT_EQ(CountAdmitted(&throttle, "q", 10), 0);
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(CountAdmitted(&throttle, "q", 10), 1);
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(CountAdmitted(&throttle, "q", 100), 50);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(CountAdmitted(&throttle, "q", 1000), 500) << "idle time is not saved up";
}

TEST_F(RequestThrottleTest, SaysWhenARequestWouldBeAdmitted) {
  RequestThrottle throttle({.per_queue = 2}, &clock_);
  EXPECT_EQ(CountAdmitted(&throttle, "q", 2), 2);
  EXPECT_EQ(throttle.Admit("sally", "q"), absl::Milliseconds(500));
  EXPECT_EQ(throttle.Admit("sally", "q"), absl::Milliseconds(500)) << "refused requests count not";
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(throttle.Admit("sally", "q"), kNow);
}

TEST_F(RequestThrottleTest, TakesTargetsBelowOneASecond) {
  RequestThrottle throttle({.per_queue = 0.25}, &clock_);
  EXPECT_EQ(throttle.Admit("sally", "q"), kNow);
  EXPECT_EQ(throttle.Admit("sally", "q"), absl::Seconds(4));
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(throttle.Admit("sally", "q"), kNow);
  EXPECT_EQ(throttle.Admit("sally", "q"), absl::Seconds(4));
}

TEST_F(RequestThrottleTest, KeepsQueuesApart) {
  RequestThrottle throttle({.per_queue = 10}, &clock_);
  EXPECT_EQ(CountAdmitted(&throttle, "a", 20), 10);
  EXPECT_EQ(CountAdmitted(&throttle, "b", 20), 10);
  EXPECT_EQ(throttle.Admit("bob", "a"), kNow) << "another account's queue of that name";
  EXPECT_EQ(CountAdmitted(&throttle, "", 100), 100) << "a request of the account alone";
}

TEST_F(RequestThrottleTest, CountsAllRequestsOfAnAccount) {
  RequestThrottle throttle({.per_queue = 10, .per_account = 15}, &clock_);
  EXPECT_EQ(CountAdmitted(&throttle, "a", 20), 10);
  EXPECT_EQ(CountAdmitted(&throttle, "b", 20), 5);
  EXPECT_EQ(CountAdmitted(&throttle, "", 5), 0);
  EXPECT_EQ(throttle.Admit("bob", "a"), kNow);
}

TEST_F(RequestThrottleTest, DoesNotCountForTheQueueWhatTheAccountRefuses) {
  RequestThrottle throttle({.per_queue = 1, .per_account = 1}, &clock_);
  EXPECT_EQ(CountAdmitted(&throttle, "a", 1), 1);
  EXPECT_EQ(CountAdmitted(&throttle, "b", 5), 0);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(CountAdmitted(&throttle, "b", 1), 1);
}

TEST_F(RequestThrottleTest, RemembersABoundedNumberOfQueues) {
  RequestThrottle throttle({.per_queue = 1}, &clock_);
  for (size_t i = 0; i < kMaxRemembered + 100; ++i) {
    EXPECT_EQ(throttle.Admit("sally", absl::StrCat("q", i)), kNow);
  }
  EXPECT_EQ(throttle.remembered(), kMaxRemembered);
  EXPECT_NE(throttle.Admit("sally", "q0"), kNow) << "a queue in use is not forgotten";
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(throttle.Admit("sally", "new"), kNow);
  EXPECT_EQ(throttle.remembered(), 1U);
}

TEST_F(RequestThrottleTest, RemembersNoNamesThatNoQueueHas) {
  RequestThrottle throttle({.per_queue = 1}, &clock_);
  EXPECT_EQ(CountAdmitted(&throttle, std::string(kMaxQueueNameBytes + 1, 'q'), 5), 5);
  EXPECT_EQ(throttle.remembered(), 0U);
  EXPECT_EQ(CountAdmitted(&throttle, std::string(kMaxQueueNameBytes, 'q'), 5), 1);
}

TEST(RetryAfterTest, TellsWholeSecondsRoundedUp) {
  EXPECT_EQ(RetryAfterSeconds(absl::Milliseconds(1)), 1);
  EXPECT_EQ(RetryAfterSeconds(absl::Seconds(1)), 1);
  EXPECT_EQ(RetryAfterSeconds(absl::Milliseconds(1001)), 2);
}

}  // namespace
}  // namespace muster::queue_gateway::throttle
