#include "muster/bus/process_usage.h"

#include "gtest/gtest.h"

namespace muster::bus {
namespace {

TEST(ProcessUsageTest, GrowsWithWhatTheProcessDoes) {
  const ProcessUsage before = MeasureProcess();
  EXPECT_GT(before.resident_bytes, uint64_t{1} << 20);
  volatile uint64_t work = 0;
  ProcessUsage after = before;
  while (after.cpu == before.cpu) {
    for (int i = 0; i < 100'000; ++i) work = work + 1;
    after = MeasureProcess();
  }
  EXPECT_GT(after.cpu, before.cpu);
}

}  // namespace
}  // namespace muster::bus
