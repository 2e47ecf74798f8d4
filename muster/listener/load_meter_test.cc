// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/load_meter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"

namespace muster::listener {
namespace {

class LoadMeterTest : public ::testing::Test {
 protected:
  v1::JobLoad Measure(absl::Duration window = absl::Seconds(2)) {
    return meter_.Measure(observed_, window);
  }

  ObservedLoad observed_;
  LoadMeter meter_{"retail"};
};

TEST_F(LoadMeterTest, TellsRatesAndCountsOfTheWindowOnly) {
  observed_.counters.messages_done = 100;
  observed_.counters.attempts = 100;
  observed_.transactions = 50'000;
  (void)Measure();
  observed_.counters.messages_done = 130;
  observed_.counters.dead_letters = 2;
  observed_.counters.attempts = 140;
  observed_.counters.messages_retried = 5;
  observed_.counters.messages_deferred = 3;
  observed_.counters.leases_lost = 1;
  observed_.transactions = 65'000;
  const v1::JobLoad load = Measure();
  EXPECT_EQ(load.job(), "retail");
  EXPECT_DOUBLE_EQ(load.items_per_second(), 16);
  EXPECT_DOUBLE_EQ(load.transactions_per_second(), 7'500);
  EXPECT_EQ(load.attempts(), 40);
  EXPECT_EQ(load.retries(), 5);
  EXPECT_EQ(load.deferrals(), 3);
  EXPECT_EQ(load.dead_letters(), 2);
  EXPECT_EQ(load.leases_lost(), 1);
}

TEST_F(LoadMeterTest, TellsWhatWokeTheListenerInTheWindowOnly) {
  observed_.counters.wakeups_push = 5;
  observed_.counters.wakeups_safety = 1;
  observed_.counters.wakeups_scheduled = 2;
  (void)Measure();
  observed_.counters.wakeups_push = 9;
  observed_.counters.wakeups_safety = 3;
  observed_.counters.wakeups_scheduled = 3;
  const v1::JobLoad load = Measure();
  EXPECT_EQ(load.wakeups_push(), 4);
  EXPECT_EQ(load.wakeups_safety(), 2);
  EXPECT_EQ(load.wakeups_scheduled(), 1);
}

TEST_F(LoadMeterTest, TellsTheShareOfTimeThatThreadsWereBusy) {
  observed_.load = {.max_dequeue_tasks = 8,
                    .times = {.tasks = 4,
                              .busy_tasks = 3,
                              .running = absl::Seconds(100),
                              .busy = absl::Seconds(100),
                              .service = {}},
                    .partitions = {}};
  (void)Measure();
  observed_.load.times.running += absl::Seconds(8);
  observed_.load.times.busy += absl::Seconds(6);
  const v1::JobLoad load = Measure();
  EXPECT_EQ(load.threads_max(), 8);
  EXPECT_EQ(load.threads(), 4);
  EXPECT_EQ(load.threads_busy(), 3);
  EXPECT_DOUBLE_EQ(load.busy_share(), 0.75);
  EXPECT_DOUBLE_EQ(Measure().busy_share(), 0) << "no thread ran";
}

TEST_F(LoadMeterTest, TellsServiceTimesOfTheWindowOnly) {
  observed_.load.times.service.Add(absl::Hours(1));
  (void)Measure();
  EXPECT_FALSE(Measure().has_service_time());
  for (int ms = 1; ms <= 100; ++ms) observed_.load.times.service.Add(absl::Milliseconds(ms));
  const v1::ServiceTime service = Measure().service_time();
  EXPECT_EQ(base::FromProto(service.mean()), absl::Microseconds(50'500));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(base::FromProto(service.p50())), 50, 5);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(base::FromProto(service.p95())), 95, 9);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(base::FromProto(service.p99())), 99, 9);
}

TEST_F(LoadMeterTest, TellsPartitionsAsTheListenerSawThem) {
  observed_.load.partitions = {{{"acme", "in-0"}, 7, absl::Seconds(3), 2}};
  const v1::JobLoad load = Measure(absl::ZeroDuration());
  ASSERT_EQ(load.partitions_size(), 1);
  EXPECT_EQ(load.partitions(0).queue(), "acme/in-0");
  EXPECT_EQ(load.partitions(0).ready(), 7);
  EXPECT_EQ(load.partitions(0).unsettled(), 2);
  EXPECT_EQ(base::FromProto(load.partitions(0).oldest_age()), absl::Seconds(3));
}

TEST_F(LoadMeterTest, TellsNoRatesOfAWindowWithoutLength) {
  observed_.counters.messages_done = 5;
  EXPECT_DOUBLE_EQ(Measure(absl::ZeroDuration()).items_per_second(), 0);
}

}  // namespace
}  // namespace muster::listener
