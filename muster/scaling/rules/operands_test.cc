// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/operands.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/scaling/rules/limits.h"
#include "muster/scaling/rules/rules_file.h"

namespace muster::scaling::rules {
namespace {

using scaling::policy::Observation;
using scaling::policy::QueueReading;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

absl::Time After(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(MetricWindowTest, YieldsTheNewestValueUntilItIsStale) {
  MetricWindow window(Aggregate::kLast, absl::ZeroDuration());
  EXPECT_FALSE(window.Value(kStart).has_value());
  window.Add(kStart, 5);
  window.Add(After(1), 7);
  EXPECT_EQ(window.Value(After(1)), 7);
  EXPECT_EQ(window.Value(After(1) + kStaleAfter), 7);
  EXPECT_FALSE(window.Value(After(2) + kStaleAfter).has_value());
}

TEST(MetricWindowTest, DropsWhatIsOldOrMeasuredTwiceOrNoNumber) {
  MetricWindow window(Aggregate::kAverage, absl::Minutes(1));
  window.Add(After(10), 4);
  window.Add(After(10), 100);
  window.Add(After(5), 100);
  window.Add(After(11), std::nan(""));
  window.Add(After(12), std::numeric_limits<double>::infinity());
  EXPECT_EQ(window.Value(After(12)), 4);
}

TEST(MetricWindowTest, AveragesAndFindsTheExtremesOfTheWindowOnly) {
  MetricWindow average(Aggregate::kAverage, absl::Minutes(2));
  MetricWindow least(Aggregate::kMin, absl::Minutes(2));
  MetricWindow most(Aggregate::kMax, absl::Minutes(2));
  for (MetricWindow* window : {&average, &least, &most}) {
    window->Add(After(0), 1000);
    window->Add(After(1), -1000);
    for (int second = 130; second < 250; ++second) window->Add(After(second), second % 2 == 0);
  }
  EXPECT_DOUBLE_EQ(*average.Value(After(249)), 0.5);
  EXPECT_EQ(least.Value(After(249)), 0);
  EXPECT_EQ(most.Value(After(249)), 1);
}

TEST(MetricWindowTest, GrowsByTheSlopePerMinute) {
  MetricWindow window(Aggregate::kGrowth, absl::Minutes(5));
  for (int second = 0; second <= 600; ++second) {
    window.Add(After(second), 1000 - 2.0 * second);
    if (second < 150) {
      EXPECT_FALSE(window.Value(After(second)).has_value()) << second;
    } else {
      ASSERT_NEAR(*window.Value(After(second)), -120, 1e-6) << second;
    }
  }
  EXPECT_FALSE(window.Value(After(661)).has_value());
}

TEST(MetricWindowTest, DoesNotLetOneJumpDecideTheSlope) {
  MetricWindow window(Aggregate::kGrowth, absl::Minutes(5));
  for (int second = 0; second < 300; ++second) window.Add(After(second), 0);
  window.Add(After(300), 1000);
  // The two ends of the window alone would give 200 a minute.
  EXPECT_GT(*window.Value(After(300)), 0);
  EXPECT_LT(*window.Value(After(300)), 5);
}

TEST(MetricWindowTest, AgreesWithAllSamplesUpToABucket) {
  MetricWindow window(Aggregate::kAverage, absl::Minutes(64));
  double sum = 0;
  for (int i = 1; i <= 64 * 60 * 10; ++i) {
    const double value = i % 977;
    if (i > 64 * 60 * 9) sum += value;
    window.Add(kStart + i * absl::Seconds(1), value);
  }
  const double exact = sum / (64 * 60);
  EXPECT_NEAR(*window.Value(kStart + absl::Minutes(640)), exact, 0.03 * exact);
}

Observation Observed(double seconds, int64_t depth) {
  Observation observation;
  observation.now = After(seconds);
  QueueReading reading;
  reading.queue = "in-0";
  reading.at = observation.now;
  reading.ready = depth;
  reading.in_flight = 3;
  reading.oldest_age = absl::Milliseconds(1500);
  reading.total_in = 50;
  reading.total_out = 40;
  observation.queues = {reading};
  observation.fleet.ready = 2;
  observation.fleet.starting = {After(seconds + 9)};
  observation.fleet.idle_since = {After(seconds - 5)};
  observation.estimates.cpu_share = 0.93;
  observation.estimates.throttled_share = 0.01;
  observation.estimates.service_time = absl::Milliseconds(250);
  return observation;
}

// Rules whose operands have the names of the metrics.
Rules AllMetrics(const std::string& depth_aggregate = "last") {
  std::string text =
      "targets: {t: {kind: process, name: p, queues: [in-0]},"
      " u: {kind: process, name: q, queues: [other]}}\noperands:\n"
      "  others: {queue: other, metric: depth, agg: last}\n";
  absl::StrAppend(&text, "  depth: {queue: in-0, metric: depth, agg: ", depth_aggregate, "}\n");
  for (const char* metric : {"in_flight", "oldest_age", "arrived", "finished"}) {
    absl::StrAppend(&text, "  ", metric, ": {queue: in-0, metric: ", metric, ", agg: last}\n");
  }
  for (const char* metric : {"cpu", "throttled", "replicas", "starting", "idle", "service_time"}) {
    absl::StrAppend(&text, "  ", metric, ": {target: t, metric: ", metric, ", agg: last}\n");
  }
  const auto rules = ParseRules(text, "");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.value_or(Rules());
}

TEST(OperandsTest, MeasuresEveryMetricInItsUnit) {
  Operands operands;
  operands.Use(AllMetrics(), "t");
  operands.Observe(Observed(0, 12));
  const auto value = [&](const char* name) { return operands.Value(name, kStart); };
  EXPECT_EQ(value("depth"), 12);
  EXPECT_EQ(value("in_flight"), 3);
  EXPECT_EQ(value("oldest_age"), 1.5);
  EXPECT_EQ(value("arrived"), 50);
  EXPECT_EQ(value("finished"), 40);
  EXPECT_DOUBLE_EQ(*value("cpu"), 93);
  EXPECT_DOUBLE_EQ(*value("throttled"), 1);
  EXPECT_EQ(value("replicas"), 2);
  EXPECT_EQ(value("starting"), 1);
  EXPECT_EQ(value("idle"), 1);
  EXPECT_EQ(value("service_time"), 0.25);
  EXPECT_FALSE(value("others").has_value());
  EXPECT_FALSE(value("nothing").has_value());
}

TEST(OperandsTest, KnowNothingOfReplicasThatAreNotThere) {
  Operands operands;
  operands.Use(AllMetrics(), "t");
  Observation observation = Observed(0, 12);
  observation.fleet.ready = 0;
  observation.queues.clear();
  operands.Observe(observation);
  for (const char* name : {"depth", "cpu", "throttled", "service_time"}) {
    EXPECT_FALSE(operands.Value(name, kStart).has_value()) << name;
  }
  EXPECT_EQ(operands.Value("replicas", kStart), 0);
}

TEST(OperandsTest, DatesAReadingByWhenItWasTaken) {
  Operands operands;
  operands.Use(AllMetrics("max, over: 30s"), "t");
  Observation observation = Observed(0, 12);
  operands.Observe(observation);
  observation.now = After(31);  // the same reading, half a minute later
  operands.Observe(observation);
  EXPECT_FALSE(operands.Value("depth", After(31)).has_value());
}

TEST(OperandsTest, KeepWhatTheyMeasuredWhenRulesChangeButNotTheirDefinition) {
  Operands operands;
  operands.Use(AllMetrics(), "t");
  operands.Observe(Observed(0, 12));
  operands.Use(AllMetrics(), "t");
  EXPECT_EQ(operands.Value("depth", kStart), 12);
  operands.Use(AllMetrics("max, over: 5m"), "t");
  EXPECT_FALSE(operands.Value("depth", kStart).has_value());
  EXPECT_EQ(operands.Value("in_flight", kStart), 3);
}

}  // namespace
}  // namespace muster::scaling::rules
