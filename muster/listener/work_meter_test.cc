#include "muster/listener/work_meter.h"

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::listener {
namespace {

TEST(WorkMeterTest, AddsUpTheTimeOfTasksAndOfTheirWork) {
  base::FakeClock clock;
  WorkMeter meter(&clock);
  clock.Advance(absl::Hours(1));  // nobody runs
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
