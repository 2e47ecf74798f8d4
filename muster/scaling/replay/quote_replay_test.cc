// SPDX-License-Identifier: Apache-2.0

// Compares quotes with simulated runs of the quoted work.
#include <algorithm>

#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/quote.h"
#include "muster/scaling/replay/simulator.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::scaling::replay {
namespace {

const int kRounds = base::testing::CaseCount(300);

// A random round: no replica runs, and no item waits.
struct Round {
  explicit Round(const base::UniformSource& uniform) {
    const auto within = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(uniform() * static_cast<double>(most - least));
    };
    options.service_time = absl::Milliseconds(within(10, 2000));
    options.sla = absl::Seconds(within(30, 900));
    options.cold_start = absl::Seconds(within(1, absl::ToInt64Seconds(options.sla) / 2));
    deadline.sla = options.sla;
    // Work for one to two hundred replicas.
    const absl::Duration run = options.sla - options.cold_start;
    work.items = within(1, 200) * std::max<int64_t>(1, run / options.service_time);
  }

  scaling::policy::Quotation Quoted() const {
    scaling::policy::Observation seen;
    seen.now = absl::FromUnixSeconds(1'000'000);
    seen.bounds.max = options.max;
    seen.estimates.items_per_second = options.rate();
    seen.estimates.service_time = options.service_time;
    seen.estimates.cold_start = options.cold_start;
    return Quote(work, seen, deadline).value();
  }

  Metrics Replayed() const {
    Trace trace;
    trace.start = absl::FromUnixSeconds(1'000'000);
    trace.arrivals = {{0, work.items, 0}};
    trace.items = work.items;
    trace.seconds = 1;
    const auto policy = scaling::policy::MakeDeadlinePolicy(deadline).value();
    return Simulate(trace, options, policy.get(), {});
  }

  SimOptions options;
  scaling::policy::DeadlineOptions deadline;
  scaling::policy::QuotedWork work;
};

class QuoteReplayTest : public ::testing::Test {
 protected:
  QuoteReplayTest() { RecordProperty("seed", seed_); }

  const int seed_ = static_cast<int>(base::testing::TestSeed());
  const base::UniformSource uniform_ = base::SeededUniform(static_cast<uint64_t>(seed_));
};

TEST_F(QuoteReplayTest, WithAsManyReplicasAsItNeedsTheWorkIsInTimeAndWithOneLessItIsLate) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed_);
  for (int i = 0; i < kRounds; ++i) {
    Round round(uniform_);
    const int needs = round.Quoted().needs;
    ASSERT_GT(needs, 0);
    round.options.max = needs;
    ASSERT_TRUE(round.Quoted().feasible);
    EXPECT_EQ(round.Replayed().violations, 0) << "needs " << needs << " in round " << i;
    if (needs == 1) continue;
    round.options.max = needs - 1;
    ASSERT_FALSE(round.Quoted().feasible);
    EXPECT_GT(round.Replayed().violations, 0) << "needs " << needs << " in round " << i;
  }
}

TEST_F(QuoteReplayTest, TheWorkEndsAndCostsAsItWasQuoted) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed_);
  for (int i = 0; i < kRounds; ++i) {
    Round round(uniform_);
    round.deadline.patience = 0;
    round.deadline.hold = 0;
    round.options.max = static_cast<int>(20 + uniform_() * 300);
    const scaling::policy::Quotation quoted = round.Quoted();
    const Metrics metrics = round.Replayed();
    const double finish = absl::ToDoubleSeconds(quoted.finish - absl::FromUnixSeconds(1'000'000));
    const double last = static_cast<double>(metrics.latencies.max_us()) / 1e6;
    // The simulator starts replicas at whole seconds, which sometimes makes the policy start one
    // more.
    EXPECT_LE(last, finish + 1) << "round " << i;
    EXPECT_GE(last, 0.9 * finish - 1) << "round " << i;
    // Each replica leaves some seconds after its last item.
    EXPECT_NEAR(metrics.replica_seconds, quoted.replica_seconds,
                4 * quoted.replicas + 0.05 * quoted.replica_seconds)
        << "round " << i;
  }
}

}  // namespace
}  // namespace muster::scaling::replay
