// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/lease_table.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster::queue::jetstream {
namespace {

TEST(LeaseTableTest, ForgetsWhatHasLapsedAndKeepsTheRest) {
  LeaseTable table;
  table.Put(1, {.deliveries = 1, .ends = absl::Seconds(10)});
  table.Put(2, {.deliveries = 1, .ends = absl::Seconds(20)});
  table.Sweep(absl::Seconds(15));
  EXPECT_FALSE(table.Find(1, 1).has_value());
  EXPECT_TRUE(table.Find(2, 1).has_value());
}

TEST(LeaseTableTest, ReadsAllLeasesOnceAPauseHoweverOftenItIsSwept) {
  LeaseTable table;
  uint64_t sweeps = 0, calls = 0;
  for (absl::Duration now; now < 10 * kSweepPause; now += kSweepPause / 100) {
    table.Put(1, {.deliveries = 1, .ends = now - absl::Seconds(1)});
    table.Sweep(now);
    ++calls;
    if (!table.Find(1, 1).has_value()) ++sweeps;
  }
  EXPECT_EQ(calls, 1000u);
  EXPECT_EQ(sweeps, 10u);
}

}  // namespace
}  // namespace muster::queue::jetstream
