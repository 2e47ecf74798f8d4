// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/metrics.h"

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::listener {

namespace {

TEST(ServiceTimesTest, HasNothingToSayOfNothing) {
  EXPECT_EQ(ServiceTimes().Mean(), absl::ZeroDuration());
  EXPECT_EQ(ServiceTimes().Percentile(0.5), absl::ZeroDuration());
}

TEST(ServiceTimesTest, PercentilesAreTooLargeByATenthAtTheMost) {
  ServiceTimes times;
  for (int ms = 1; ms <= 1000; ++ms) times.Add(absl::Milliseconds(ms));
  EXPECT_EQ(times.count(), 1000);
  EXPECT_EQ(times.Mean(), absl::Microseconds(500'500));
  for (const double share : {0.5, 0.95, 0.99, 1.0}) {
    const absl::Duration exact = absl::Milliseconds(1000 * share);
    EXPECT_GE(times.Percentile(share), exact - absl::Microseconds(1)) << share;
    EXPECT_LE(times.Percentile(share), 1.1 * exact) << share;
  }
}

TEST(ServiceTimesTest, TakesWhatIsOutsideForTheNearest) {
  ServiceTimes times;
  for (const absl::Duration time :
       {absl::ZeroDuration(), -absl::Seconds(1), absl::Nanoseconds(1)}) {
    times.Add(time);
  }
  EXPECT_EQ(times.Percentile(1), absl::Microseconds(1));
  times.Add(absl::Hours(24 * 365));
  EXPECT_GT(times.Percentile(1), absl::Hours(24));
}

TEST(ServiceTimesTest, TellsWhatWasAddedSince) {
  ServiceTimes times;
  times.Add(absl::Seconds(10));
  const ServiceTimes before = times;
  times.Add(absl::Milliseconds(1));
  const ServiceTimes since = times.Since(before);
  EXPECT_EQ(since.count(), 1);
  EXPECT_EQ(since.Mean(), absl::Milliseconds(1));
  EXPECT_LT(since.Percentile(1), absl::Milliseconds(2));
}

TEST(WorkMeterTest, AddsUpTheTimeOfTasksAndOfTheirWork) {
  base::FakeClock clock;
  WorkMeter meter(&clock);
  clock.Advance(absl::Hours(1));  // no task runs
  meter.TaskBegan();
  clock.Advance(absl::Seconds(1));
  meter.TaskBegan();
  meter.WorkBegan();
  clock.Advance(absl::Seconds(2));
  meter.WorkEnded();
  meter.TaskEnded();
  clock.Advance(absl::Seconds(4));
  const WorkTimes times = meter.Read();
  EXPECT_EQ(times.tasks, 1);
  EXPECT_EQ(times.busy_tasks, 0);
  EXPECT_EQ(times.running, absl::Seconds(1 + 2 * 2 + 4));
  EXPECT_EQ(times.busy, absl::Seconds(2));
}

TEST(WorkMeterTest, CountsWhatIsStillUnderWay) {
  base::FakeClock clock;
  WorkMeter meter(&clock);
  meter.TaskBegan();
  meter.WorkBegan();
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(meter.Read().busy, absl::Seconds(3));
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(meter.Read().busy, absl::Seconds(6));
}

}  // namespace

}  // namespace muster::listener
