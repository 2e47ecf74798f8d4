// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/back_pressure_metrics.h"

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/telemetry/shown.h"

namespace muster::initiator {
namespace {

using telemetry::Shown;

TEST(BackPressureMetricsTest, ShowWhatIsHeldBackAndForHowLong) {
  const os::TempDir dir;
  base::FakeClock clock;
  queue::rocksdb::Options options;
  options.clock = &clock;
  const auto queues = *queue::rocksdb::RocksDbQueueStore::Open(dir / "queues", options);
  batch::BackPressure back_pressure({}, queues.get(), &clock);
  telemetry::Registry registry;
  const auto reading = ReadBackPressure(&registry, &back_pressure);
  EXPECT_EQ(Shown(registry, "muster_held_back_batches"), 0);
  EXPECT_EQ(Shown(registry, "muster_held_back_items{queue=\"retail-in\"}"), std::nullopt);

  const queue::QueueId first_partition{"acme", "retail-in-0"};
  back_pressure.HoldBack(first_partition, 1, 1000);
  back_pressure.HoldBack(first_partition, 2, 500);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(Shown(registry, "muster_held_back_items{queue=\"retail-in\"}"), 1500);
  EXPECT_EQ(Shown(registry, "muster_held_back_batches"), 2);
  EXPECT_EQ(Shown(registry, "muster_held_back_seconds_total"), 3);

  back_pressure.Leave(first_partition, 1);
  back_pressure.Leave(first_partition, 2);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(Shown(registry, "muster_held_back_batches"), 0);
  EXPECT_EQ(Shown(registry, "muster_held_back_seconds_total"), 3);
}

}  // namespace
}  // namespace muster::initiator
