// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/job_throughput.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/initiator/fake_processors.h"

namespace muster::initiator::submit {

namespace {

class JobThroughputTest : public ::testing::Test {
 protected:
  double Speed(const std::string& job = "shop") { return throughput_->ItemsPerSecond(job); }

  base::FakeClock clock_;
  FakeProcessors processors_{&clock_};
  std::unique_ptr<JobThroughput> throughput_ = processors_.Throughput();
};

TEST_F(JobThroughputTest, AreThreadsByTheTimeThatAnItemTakes) {
  processors_.Say("a", {.threads_max = 4, .service_time = absl::Seconds(8)});
  EXPECT_DOUBLE_EQ(Speed(), 0.5);
}

TEST_F(JobThroughputTest, AreZeroWhereNobodyWorksForTheJobOrHasFinishedAnItem) {
  EXPECT_EQ(Speed(), 0);
  processors_.Say("a", {.threads_max = 4});
  EXPECT_EQ(Speed(), 0);
  processors_.Say("a", {.threads_max = 4, .service_time = absl::Seconds(1)});
  EXPECT_EQ(Speed("bakery"), 0);
}

TEST_F(JobThroughputTest, AreThoseOfAllProcessorsTogether) {
  processors_.Say("a", {.threads_max = 4, .service_time = absl::Seconds(8)});
  processors_.Say("b", {.threads_max = 12});
  EXPECT_DOUBLE_EQ(Speed(), 2) << "b takes as long for an item as a";
  processors_.Say("bakery",
                  {.job = "bakery", .threads_max = 100, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 2);
}

// One thread finishes 20 items in 2 s, another 200 in 2 s: 55 a second for each thread.
TEST_F(JobThroughputTest, WeighFastAndSlowProcessorsByTheItemsTheyFinish) {
  processors_.Say(
      "slow", {.threads_max = 1, .items_per_second = 10, .service_time = absl::Milliseconds(100)});
  processors_.Say(
      "fast", {.threads_max = 1, .items_per_second = 100, .service_time = absl::Milliseconds(10)});
  EXPECT_DOUBLE_EQ(Speed(), 110);
}

TEST_F(JobThroughputTest, AreRememberedWhileNothingIsFinished) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Minutes(10)});
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(bus::kHeartbeatInterval);
    processors_.Say("a", {.threads_max = 1, .threads = 1, .busy_share = 1});
  }
  EXPECT_DOUBLE_EQ(Speed(), 1 / 600.0);
}

TEST_F(JobThroughputTest, AreRememberedAcrossDaysAndForgottenWithTheNextItem) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Minutes(10)});
  clock_.Advance(absl::Hours(24 * 365));
  processors_.Say("a", {.threads_max = 1});
  EXPECT_DOUBLE_EQ(Speed(), 1 / 600.0);
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 1);
}

// A minute later the item of 4 s counts as half of one: 1.5 items in 2 s + 1 s.
TEST_F(JobThroughputTest, FollowItemsThatBecomeQuicker) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(4)});
  clock_.Advance(absl::Minutes(1));
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 0.5);
}

// Two threads that are always busy finish 1,000 items a second; their handlers take 20 % of the
// time.
TEST_F(JobThroughputTest, CountWhatAnItemCostsBesideItsHandler) {
  processors_.Say("a", {.threads_max = 4,
                        .threads = 2,
                        .busy_share = 1,
                        .items_per_second = 1000,
                        .service_time = absl::Microseconds(400)});
  EXPECT_DOUBLE_EQ(Speed(), 2000);
}

// Three of four threads are still busy with an item: one finished item says nothing about them.
TEST_F(JobThroughputTest, AreByTheHandlersTimeWhileFewItemsAreFinished) {
  processors_.Say("a", {.threads_max = 4,
                        .threads = 4,
                        .busy_share = 1,
                        .items_per_second = 0.5,
                        .service_time = absl::Seconds(2)});
  EXPECT_DOUBLE_EQ(Speed(), 2);
}

TEST_F(JobThroughputTest, DoNotTakeARateForTheirs) {
  processors_.Say("a", {.threads_max = 4,
                        .threads = 4,
                        .busy_share = 0.01,
                        .items_per_second = 20,
                        .service_time = absl::Milliseconds(100)});
  EXPECT_DOUBLE_EQ(Speed(), 40) << "of idle threads it tells what came in";
}

TEST_F(JobThroughputTest, AreNotThoseOfProcessorsThatLeaveOrHaveGone) {
  processors_.Say("a", {.threads_max = 1, .service_time = absl::Seconds(1)});
  processors_.Say("b", {.threads_max = 2, .service_time = absl::Seconds(1)});
  EXPECT_DOUBLE_EQ(Speed(), 3);
  processors_.Say("b", {.threads_max = 2, .leaving = true});
  EXPECT_DOUBLE_EQ(Speed(), 1);
  clock_.Advance(4 * bus::kHeartbeatInterval);
  EXPECT_EQ(Speed(), 0);
}

TEST_F(JobThroughputTest, AreNotThoseOfAnotherAccount) {
  processors_.Say("a", {.account = "acme2", .threads_max = 1, .service_time = absl::Seconds(1)});
  EXPECT_EQ(Speed(), 0);
  processors_.Say("b", {.threads_max = 1, .service_time = absl::Seconds(4)});
  EXPECT_DOUBLE_EQ(Speed(), 0.25);
}

TEST_F(JobThroughputTest, SurviveFiguresThatNobodyCouldMean) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double figure : {nan, infinity, -infinity, -1.0, 1e308}) {
    for (const absl::Duration service :
         {absl::InfiniteDuration(), -absl::Seconds(1), absl::Nanoseconds(1)}) {
      for (const int threads :
           {std::numeric_limits<int>::min(), 0, std::numeric_limits<int>::max()}) {
        processors_.Say("a", {.threads_max = threads,
                              .threads = threads,
                              .busy_share = figure,
                              .items_per_second = figure,
                              .service_time = service});
        EXPECT_TRUE(std::isfinite(Speed())) << figure << " " << service << " " << threads;
        EXPECT_GE(Speed(), 0);
      }
    }
  }
}

TEST_F(JobThroughputTest, KeepThoseOfTheJobsThatWereHeardOfLast) {
  processors_.Say("a", {.job = "first", .threads_max = 1, .service_time = absl::Seconds(1)});
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(absl::Milliseconds(1));
    processors_.Say(
        "b", {.job = absl::StrCat("job", i), .threads_max = 1, .service_time = absl::Seconds(1)});
  }
  processors_.Say("a", {.job = "first", .threads_max = 1});
  EXPECT_EQ(Speed("first"), 0);
  EXPECT_DOUBLE_EQ(Speed("job999"), 1);
}

}  // namespace

}  // namespace muster::initiator::submit
