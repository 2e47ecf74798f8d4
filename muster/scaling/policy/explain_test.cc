// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/explain.h"

#include "gtest/gtest.h"

namespace muster::scaling::policy {
namespace {

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() {
    observation_.bounds.max = 5;
    observation_.fleet.ready = 2;
    decision_.replicas = 5;
    decision_.wanted = 8;
    decision_.binding = Binding::kMax;
    absl::ParseTime(absl::RFC3339_full, "2026-01-02T06:00:00Z", &six_, nullptr);
    decision_.deadline = six_;
    decision_.feasibility.feasible = false;
    decision_.feasibility.needs = 7;
    decision_.feasibility.late_by = absl::Minutes(4);
  }

  std::string Text() const { return Explain(decision_, observation_); }

  absl::Time six_;
  Decision decision_;
  Observation observation_;
};

TEST_F(ExplainTest, SaysWhatACapCosts) {
  EXPECT_EQ(Text(),
            "Grow from 2 to 5 replicas. Needs 7, capped at 5: misses 06:00 by 4 min. "
            "SLA infeasible: needs N = 7, N_max = 5; earliest finish 4 min late.");
}

TEST_F(ExplainTest, SaysWhatAnInfeasibleSlaNeeds) {
  decision_.feasibility.needs = 57;
  decision_.feasibility.late_by = absl::Seconds(84);
  observation_.bounds.max = 40;
  EXPECT_EQ(ExplainInfeasible(decision_, observation_.bounds),
            "SLA infeasible: needs N = 57, N_max = 40; earliest finish 84 s late");
  decision_.feasibility.needs = 0;
  EXPECT_EQ(ExplainInfeasible(decision_, observation_.bounds),
            "SLA infeasible: no number of replicas would do it; earliest finish 84 s late");
}

TEST_F(ExplainTest, SaysThatWorkWithoutReplicasIsNeverDone) {
  decision_.feasibility.late_by = absl::InfiniteDuration();
  EXPECT_EQ(Text(),
            "Grow from 2 to 5 replicas. Needs 7, capped at 5: misses 06:00 for ever. "
            "SLA infeasible: needs N = 7, N_max = 5; it never ends.");
}

TEST_F(ExplainTest, SaysThatACapEatsTheMarginOnly) {
  decision_.feasibility = Feasibility();
  EXPECT_EQ(Text(), "Grow from 2 to 5 replicas. Needs 8, capped at 5.");
}

TEST_F(ExplainTest, TellsTimesInTheZoneOfTheReader) {
  EXPECT_NE(Explain(decision_, observation_, absl::FixedTimeZone(3600)).find("misses 07:00 by"),
            std::string::npos);
}

TEST_F(ExplainTest, SaysWhyReplicasStayOrGo) {
  decision_ = Decision();
  decision_.replicas = 2;
  decision_.binding = Binding::kHold;
  EXPECT_EQ(Text(),
            "Keep 2 replicas. Idle ones stay for as long as it pays not to start them again.");
  decision_.replicas = 1;
  decision_.binding = Binding::kIdle;
  EXPECT_EQ(Text(),
            "Shrink from 2 to 1 replica. Those that go have been idle for longer than it pays to "
            "keep them.");
}

TEST_F(ExplainTest, RecommendsPartitionsWhereTheQueueThrottles) {
  decision_.binding = Binding::kThrottled;
  decision_.replicas = 2;
  decision_.feasibility = Feasibility();
  observation_.estimates.throttled_share = 0.034;
  EXPECT_EQ(Text(),
            "Keep 2 replicas. Needs 8, but the queue throttles 3.4 % of the calls. More partitions "
            "would help.");
}

TEST_F(ExplainTest, HasASentenceForEveryBinding) {
  for (int binding = 0; binding <= static_cast<int>(Binding::kPolicy); ++binding) {
    decision_.binding = static_cast<Binding>(binding);
    EXPECT_GT(Text().size(), 40U) << binding;
    EXPECT_NE(BindingName(decision_.binding), "unknown") << binding;
  }
}

TEST_F(ExplainTest, ShowsDurationsAsPeopleSayThem) {
  EXPECT_EQ(ShowDuration(absl::ZeroDuration()), "0 s");
  EXPECT_EQ(ShowDuration(absl::Nanoseconds(1)), "under 1 ms");
  EXPECT_EQ(ShowDuration(absl::Microseconds(3200)), "3 ms");
  EXPECT_EQ(ShowDuration(absl::Milliseconds(100)), "0.1 s");
  EXPECT_EQ(ShowDuration(absl::Milliseconds(500)), "0.5 s");
  EXPECT_EQ(ShowDuration(absl::Seconds(84)), "84 s");
  EXPECT_EQ(ShowDuration(absl::Seconds(250)), "4 min 10 s");
  EXPECT_EQ(ShowDuration(absl::Hours(3) + absl::Minutes(5)), "3 h 5 min");
  EXPECT_EQ(ShowDuration(absl::InfiniteDuration()), "for ever");
}

}  // namespace
}  // namespace muster::scaling::policy
