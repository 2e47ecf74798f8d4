// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/deadline_profile.h"

#include <vector>

#include "gtest/gtest.h"

namespace muster::scaling::policy {
namespace {

const absl::Time kProfileNow = absl::FromUnixSeconds(1'000'000);

// 40 items a second and replica, 30 s of cold start, 300 s of promise: d = 284 s.
class DeadlineProfileTest : public ::testing::Test {
 protected:
  DeadlineProfileTest() {
    supply_.now = kProfileNow;
    supply_.items_per_second = 40;
    supply_.cold_start = absl::Seconds(30);
    promise_.deadline = absl::Seconds(300);
    promise_.service_time = absl::Seconds(1);
  }

  void Queue(double seconds_ago, int64_t items) {
    cohorts_.push_back({kProfileNow - absl::Seconds(seconds_ago), items});
    backlog_.items += static_cast<double>(items);
  }

  void Forget() {
    cohorts_.clear();
    backlog_.items = 0;
  }

  void Starting(double seconds) {
    starting_.push_back(kProfileNow + absl::Seconds(seconds));
    supply_.starting = starting_;
  }

  Profile Ask() const { return ProfileDeadlines(backlog_, supply_, promise_); }
  Feasibility JudgeWith(int replicas) const { return Judge(backlog_, supply_, promise_, replicas); }

  std::deque<Cohort> cohorts_;
  Backlog backlog_{&cohorts_};
  std::vector<absl::Time> starting_;
  Supply supply_;
  Promise promise_;
};

TEST_F(DeadlineProfileTest, AsksForNothingWhereNothingIsQueued) {
  const Profile profile = Ask();
  EXPECT_EQ(profile.extra, 0);
  EXPECT_EQ(profile.least_ready, 0);
  EXPECT_FALSE(profile.deadline.has_value());
}

TEST_F(DeadlineProfileTest, SizesABatchByTheTimeThatAReplicaHasAfterItsColdStart) {
  Queue(0, 30'000);
  EXPECT_NEAR(Ask().missing, 30'000 / (40 * 254.0), 1e-9);
  EXPECT_EQ(Ask().extra, 3);
  EXPECT_EQ(Ask().deadline, kProfileNow + absl::Seconds(300));
}

TEST_F(DeadlineProfileTest, CountsReadyAndStartingReplicas) {
  Queue(0, 30'000);
  supply_.ready = 1;
  EXPECT_NEAR(Ask().missing, (30'000 - 40 * 284) / (40 * 254.0), 1e-9);
  Starting(30);
  Starting(84);
  EXPECT_NEAR(Ask().missing, 480 / (40 * 254.0), 1e-9)
      << "40 (284 + 254 + 200) = 29,520: 480 are missing";
}

// The numbers of docs/scaling.md.
TEST_F(DeadlineProfileTest, HasTheNumbersOfTheExampleByHand) {
  Queue(0, 30'000);
  supply_.ready = 1;
  EXPECT_NEAR(Ask().missing, 1.83, 0.005);
  EXPECT_EQ(Ask().extra, 2);
  EXPECT_EQ(JudgeWith(3).needs, 3);
  EXPECT_EQ(JudgeWith(3).finish, kProfileNow + absl::Seconds(270));

  Forget();
  Queue(60, 25'200);
  supply_.ready = 3;
  EXPECT_EQ(Ask().missing, 0);
  Queue(0, 30'000);
  EXPECT_NEAR(Ask().missing, 2.08, 0.005);
  EXPECT_EQ(Ask().extra, 2);
  EXPECT_EQ(JudgeWith(4).needs, 5);
  EXPECT_EQ(JudgeWith(4).finish, kProfileNow + absl::Seconds(352.5));
  EXPECT_EQ(JudgeWith(4).late_by, absl::Seconds(52.5));
}

TEST_F(DeadlineProfileTest, LooksAtEveryDeadlineAndNotAtTheSumOnly) {
  Queue(200, 10'000);  // due in 84 s
  Queue(0, 100);
  supply_.ready = 1;
  EXPECT_NEAR(Ask().missing, (10'000 - 40 * 84) / (40 * 54.0), 1e-9);
  EXPECT_EQ(Ask().deadline, kProfileNow + absl::Seconds(100));
}

TEST_F(DeadlineProfileTest, LeavesOutWhatIsReckonedToBeDone) {
  Queue(100, 10'000);
  Queue(0, 20'000);
  backlog_.done = 12'000;
  EXPECT_NEAR(Ask().missing, 18'000 / (40 * 254.0), 1e-9);
}

TEST_F(DeadlineProfileTest, WaitsWithAFractionThatPatienceAllows) {
  Queue(0, 4000);  // 0.39 of a replica
  EXPECT_EQ(Ask().extra, 0);
  promise_.patience = 0;
  EXPECT_EQ(Ask().extra, 1);
}

TEST_F(DeadlineProfileTest, StartsOneAtTheLatestStartHoweverLittleIsMissing) {
  Queue(223, 10);  // due in 61 s: 31 s to run
  EXPECT_EQ(Ask().extra, 0);
  Forget();
  Queue(224, 10);
  EXPECT_EQ(Ask().extra, 1);
  EXPECT_TRUE(Ask().late_start);
}

TEST_F(DeadlineProfileTest, AsksForNoMoreOnceWhatItAskedForStarts) {
  for (double age : {0.0, 100.0, 230.0, 290.0, 400.0, 1e6}) {
    Forget();
    starting_.clear();
    supply_.starting = {};
    Queue(age, 50'000);
    const int extra = Ask().extra;
    ASSERT_GT(extra, 0) << age;
    for (int i = 0; i < extra; ++i) Starting(30);
    EXPECT_EQ(Ask().extra, 0) << age;
  }
}

TEST_F(DeadlineProfileTest, WakesParkedReplicasBeforeItStartsOthers) {
  promise_.deadline = absl::Seconds(20);  // d = 17 s, below the cold start
  Queue(0, 2000);
  supply_.release = absl::Seconds(1);
  const int cold = Ask().extra;
  supply_.parked = 100;
  const int warm = Ask().extra;
  EXPECT_LT(warm, cold);
  EXPECT_TRUE(JudgeWith(10).feasible);
}

TEST_F(DeadlineProfileTest, KeepsTheReadyReplicasThatTheDeadlinesNeed) {
  Queue(0, 30'000);
  supply_.ready = 10;
  EXPECT_EQ(Ask().least_ready, 3);
  Starting(84);
  EXPECT_EQ(Ask().least_ready, 2) << "(30,000 - 8,000) / (40 · 284) = 1.9";
}

TEST_F(DeadlineProfileTest, KeepsReadyReplicasWhereANewOneWouldComeTooLate) {
  Queue(240, 6'000);  // due in 44 s, and a new replica would work from the thirtieth on
  supply_.ready = 10;
  EXPECT_EQ(Ask().least_ready, 4) << "6,000 / (40 · 44) = 3.4";
}

TEST_F(DeadlineProfileTest, KeepsAMarginOfAFewSecondsThatNeverEatsThePromise) {
  EXPECT_EQ(promise_.margin(), absl::Seconds(15));
  promise_.deadline = absl::Seconds(20);
  EXPECT_EQ(promise_.margin(), absl::Seconds(2));
  promise_.deadline = absl::Seconds(1);
  EXPECT_EQ(promise_.margin(), absl::Milliseconds(500));
}

TEST_F(DeadlineProfileTest, JudgesByThePromiseItselfAndNotByTheMargin) {
  Queue(0, 42'000);
  const Feasibility verdict = JudgeWith(4);
  EXPECT_TRUE(verdict.feasible);
  EXPECT_EQ(verdict.needs, 4);
  EXPECT_EQ(verdict.finish, kProfileNow + absl::Seconds(30 + 262.5));
  EXPECT_EQ(verdict.late_by, absl::ZeroDuration());
}

TEST_F(DeadlineProfileTest, TellsWhatWouldDoItAndHowLateItIsWhereItIsCapped) {
  Queue(0, 600'000);
  const Feasibility verdict = JudgeWith(40);
  EXPECT_FALSE(verdict.feasible);
  EXPECT_EQ(verdict.needs, 56);
  EXPECT_EQ(verdict.finish, kProfileNow + absl::Seconds(405));
  EXPECT_EQ(verdict.late_by, absl::Seconds(105));
}

TEST_F(DeadlineProfileTest, SaysThatNoNumberWouldDoWhatIsLateAlready) {
  Queue(310, 40);
  supply_.ready = 1;
  const Feasibility verdict = JudgeWith(1000);
  EXPECT_FALSE(verdict.feasible);
  EXPECT_EQ(verdict.needs, 0);
  EXPECT_EQ(verdict.late_by, absl::Seconds(11));
}

TEST_F(DeadlineProfileTest, SaysThatItNeverEndsWithoutReplicas) {
  Queue(0, 40);
  const Feasibility verdict = JudgeWith(0);
  EXPECT_FALSE(verdict.feasible);
  EXPECT_EQ(verdict.needs, 1);
  EXPECT_EQ(verdict.finish, absl::InfiniteFuture());
  EXPECT_EQ(verdict.late_by, absl::InfiniteDuration());
}

TEST_F(DeadlineProfileTest, StaysFiniteForTheLargestBacklog) {
  Queue(1e6, int64_t{1} << 50);
  supply_.items_per_second = 1e-6;
  EXPECT_EQ(Ask().extra, 1'000'000);
  EXPECT_FALSE(JudgeWith(1'000'000).feasible);
}

}  // namespace
}  // namespace muster::scaling::policy
