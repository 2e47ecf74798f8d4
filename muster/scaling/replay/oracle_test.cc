// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/oracle.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "muster/base/random.h"

namespace muster::scaling::replay {
namespace {

Trace TraceOf(const std::vector<int64_t>& items_by_second) {
  Trace trace;
  trace.start = absl::UnixEpoch();
  for (size_t second = 0; second < items_by_second.size(); ++second) {
    const int64_t items = items_by_second[second];
    if (items > 0) trace.arrivals.push_back({static_cast<int64_t>(second) * kSecondUs, items, 0});
    trace.items += items;
  }
  trace.seconds = static_cast<int64_t>(items_by_second.size());
  return trace;
}

// One item a second and replica.
SimOptions Options(int sla_seconds, int cold_start_seconds) {
  SimOptions options;
  options.service_time = absl::Seconds(1);
  options.sla = absl::Seconds(sla_seconds);
  options.cold_start = absl::Seconds(cold_start_seconds);
  return options;
}

// Finds the least cost by trying every number of replicas, in multiples of `grain`, in each second.
// It serves work as early as possible, which is never worse. State: replicas, waiting items.
class BruteForce {
 public:
  BruteForce(const std::vector<int64_t>& items, const SimOptions& options, int64_t grain)
      : items_(items),
        sla_(absl::ToInt64Seconds(options.sla)),
        cold_start_(absl::ToInt64Seconds(options.cold_start)),
        grain_(grain) {
    for (const int64_t come : items_) total_ += come;
  }

  double LeastCost() {
    const int64_t most = total_ / grain_;
    Costs costs(static_cast<size_t>((most + 1) * (total_ / grain_ + 1)), kInfinite);
    costs[Index(0, 0)] = 0;
    const auto end = static_cast<int64_t>(items_.size()) + sla_;
    for (int64_t second = 0; second < end; ++second) costs = Step(second, costs);
    double least = kInfinite;
    for (int64_t n = 0; n <= most; ++n) least = std::min(least, costs[Index(n, 0)]);
    return least * static_cast<double>(grain_);
  }

 private:
  using Costs = std::vector<double>;
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  size_t Index(int64_t n, int64_t waiting) const {
    return static_cast<size_t>(n * (total_ / grain_ + 1) + waiting);
  }

  int64_t ComeBy(int64_t second) const {
    int64_t come = 0;
    for (int64_t s = 0; s <= second && s < static_cast<int64_t>(items_.size()); ++s) {
      come += items_[static_cast<size_t>(s)];
    }
    return come / grain_;
  }

  Costs Step(int64_t second, const Costs& before) const {
    const int64_t most = total_ / grain_;
    Costs after(before.size(), kInfinite);
    const int64_t come = ComeBy(second);
    // At the end of this second, all items that came by second + 1 − D must be done.
    const int64_t may_wait = come - ComeBy(second + 1 - sla_);
    for (int64_t n = 0; n <= most; ++n) {
      for (int64_t waiting = 0; waiting <= most; ++waiting) {
        const double cost = before[Index(n, waiting)];
        if (cost == kInfinite) continue;
        const int64_t now = waiting + come - ComeBy(second - 1);
        for (int64_t next = 0; next <= most; ++next) {
          const int64_t left = std::max<int64_t>(0, now - next);
          if (left > may_wait) continue;
          double& best = after[Index(next, left)];
          best =
              std::min(best, cost + static_cast<double>(next) +
                                 static_cast<double>(cold_start_ * std::max<int64_t>(0, next - n)));
        }
      }
    }
    return after;
  }

  const std::vector<int64_t> items_;
  const int64_t sla_;
  const int64_t cold_start_;
  const int64_t grain_;
  int64_t total_ = 0;
};

TEST(OracleTest, SpreadsABurstOverItsWholeTime) {
  const Oracle oracle = FindOracle(TraceOf({100}), Options(10, 5));
  EXPECT_DOUBLE_EQ(oracle.starts, 10);
  EXPECT_DOUBLE_EQ(oracle.cost_seconds, 100 + 5 * 10);
  ASSERT_EQ(oracle.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(oracle.steps[0].replicas, 10);
  EXPECT_EQ(oracle.steps[1].second, 10);
  EXPECT_DOUBLE_EQ(oracle.steps[1].replicas, 0);
}

TEST(OracleTest, KeepsReplicasThroughAGapThatIsShorterThanAColdStart) {
  std::vector<int64_t> items(31);
  items[0] = items[30] = 100;
  // The gap is from 10 to 30.
  EXPECT_DOUBLE_EQ(FindOracle(TraceOf(items), Options(10, 25)).cost_seconds,
                   200 + 10 * 25 + 10 * 20);
  EXPECT_DOUBLE_EQ(FindOracle(TraceOf(items), Options(10, 15)).cost_seconds, 200 + 20 * 15);
}

TEST(OracleTest, IsNeverBeatenByTryingEverything) {
  // Slopes of the string are 60 times n divided by up to six seconds: multiples of 10 or of 12.
  const base::UniformSource uniform = base::SeededUniform(20261122);
  int matched = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> items(4);
    for (int64_t& come : items) come = 60 * static_cast<int64_t>(uniform() * 3);
    const SimOptions options =
        Options(1 + static_cast<int>(uniform() * 3), static_cast<int>(uniform() * 5));
    const double brute = std::min(BruteForce(items, options, 10).LeastCost(),
                                  BruteForce(items, options, 12).LeastCost());
    const double least = FindOracle(TraceOf(items), options).cost_seconds;
    const std::string story = testing::PrintToString(items) + " D " +
                              absl::FormatDuration(options.sla) + " L " +
                              absl::FormatDuration(options.cold_start);
    EXPECT_LE(least, brute + 1e-6) << story;
    // If the string's levels are not multiples of the grain, the search cannot match its cost.
    const Oracle oracle = FindOracle(TraceOf(items), options);
    bool tens = true;
    bool twelves = true;
    for (const Oracle::Step& step : oracle.steps) {
      tens &= std::fabs(std::remainder(step.replicas, 10)) < 1e-6;
      twelves &= std::fabs(std::remainder(step.replicas, 12)) < 1e-6;
    }
    if (!tens && !twelves) continue;
    EXPECT_NEAR(least, brute, 1e-6) << story;
    ++matched;
  }
  EXPECT_GT(matched, 200);
}

TEST(OracleTest, ServesEverythingInTimeAndNothingBeforeItComes) {
  const base::UniformSource uniform = base::SeededUniform(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> items(200);
    for (int64_t& come : items) come = uniform() < 0.2 ? static_cast<int64_t>(uniform() * 500) : 0;
    const Trace trace = TraceOf(items);
    const SimOptions options = Options(20, 7);
    const Oracle oracle = FindOracle(trace, options);
    const Metrics metrics = MeasureOracle(oracle, trace, options, {});
    EXPECT_EQ(metrics.latencies.items(), trace.items);
    EXPECT_LE(metrics.latencies.max_us(), 20 * kSecondUs);
    EXPECT_EQ(metrics.violations, 0);
    EXPECT_GE(metrics.replica_seconds, metrics.work_seconds);
  }
}

TEST(OracleTest, CostsNothingWithoutWork) {
  const Oracle oracle = FindOracle(TraceOf({0, 0}), Options(5, 5));
  EXPECT_EQ(oracle.cost_seconds, 0);
  EXPECT_EQ(MeasureOracle(oracle, TraceOf({0, 0}), Options(5, 5), {}).items, 0);
}

TEST(TautStringTest, IsTheStraightLineWhereTheTubeAllowsIt) {
  const std::vector<StringCorner> string = PullTaut({0, 0, 0, 9}, {0, 9, 9, 9});
  ASSERT_EQ(string.size(), 2u);
  EXPECT_EQ(string[1].x, 3);
}

TEST(TautStringTest, BendsAroundBothWalls) {
  // Under a low ceiling at 2, then over a high floor at 4.
  const std::vector<StringCorner> string = PullTaut({0, 0, 0, 0, 8, 10}, {0, 9, 1, 9, 9, 10});
  ASSERT_EQ(string.size(), 4u);
  EXPECT_EQ(string[1].x, 2);
  EXPECT_EQ(string[1].y, 1);
  EXPECT_EQ(string[2].x, 4);
  EXPECT_EQ(string[2].y, 8);
}

}  // namespace
}  // namespace muster::scaling::replay
