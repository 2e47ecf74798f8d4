// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/quote.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/scaling/policy/target_fixture.h"

namespace muster::scaling::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class QuoteTest : public ::testing::Test, public TargetFixture {
 protected:
  QuoteTest() { Ready(1), Read(0); }

  absl::StatusOr<Quotation> Try(int64_t items) { return Quote({items}, observation, options); }
  Quotation Of(int64_t items) { return Try(items).value(); }
  Quotation Of(int64_t items, absl::Duration sla) {
    return Quote({items, sla}, observation, options).value();
  }
  static double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }
};

// The example of docs/scaling.md: 1,200 items while two replicas start, then 120 a second.
TEST_F(QuoteTest, AnswersAsTheExampleByHand) {
  const Quotation quotation = Of(30'000);
  EXPECT_TRUE(quotation.feasible);
  EXPECT_EQ(quotation.finish, At(270));
  EXPECT_EQ(quotation.deadline, At(300));
  EXPECT_EQ(quotation.late_by, absl::ZeroDuration());
  EXPECT_EQ(quotation.replicas_now, 1);
  EXPECT_EQ(quotation.replicas, 3);
  EXPECT_EQ(quotation.needs, 3);
  EXPECT_EQ(quotation.max, 1000);
  EXPECT_DOUBLE_EQ(quotation.replica_seconds, 30'000 / 40.0 + 2 * 30);
  EXPECT_EQ(quotation.explanation,
            "Done in 4 min 30 s by 3 replicas instead of 1, 30 s before it is due.");
}

// Two of them: 1,200 items, then 80 a second.
TEST_F(QuoteTest, SaysHowLateItIsWhatItNeedsAndWhatCouldBePromised) {
  observation.bounds.max = 2;
  const Quotation quotation = Of(30'000);
  EXPECT_FALSE(quotation.feasible);
  EXPECT_EQ(quotation.finish, At(390));
  EXPECT_EQ(quotation.late_by, absl::Seconds(90));
  EXPECT_EQ(quotation.replicas, 2);
  EXPECT_EQ(quotation.needs, 3);
  EXPECT_EQ(quotation.shortest_sla, absl::Seconds(390));
  EXPECT_EQ(quotation.explanation,
            "Done in 6 min 30 s by 2 replicas instead of 1, 90 s late. It needs 3 replicas, and at "
            "most 2 are allowed. The shortest promise that could be kept is 6 min 30 s.");
}

TEST_F(QuoteTest, CountsWhatWaitsAlreadyAndServesItFirst) {
  Read(12'000);
  EXPECT_EQ(Of(18'000).finish, At(270));
  EXPECT_DOUBLE_EQ(Of(18'000).replica_seconds, 18'000 / 40.0 + 1 * 30)
      << "one of the two would start for what waits";
}

TEST_F(QuoteTest, DoesNotBlameTheWorkForWhatIsLateAlready) {
  Read(400);
  observation.queues.front().oldest_age = absl::Hours(1);
  const Quotation quotation = Of(400);
  EXPECT_TRUE(quotation.feasible) << quotation.explanation;
  EXPECT_LE(quotation.finish, At(20));
}

// The waiting work is due in 20 s, though the new work may take an hour.
TEST_F(QuoteTest, KeepsTheDeadlinesOfWhatWaits) {
  Read(4000);
  observation.queues.front().oldest_age = absl::Seconds(200);
  EXPECT_GT(Of(1, absl::Hours(1)).replicas, 1);
  observation.queues.front().oldest_age = absl::ZeroDuration();
  EXPECT_EQ(Of(1, absl::Hours(1)).replicas, 1);
}

TEST_F(QuoteTest, TakesAPromiseAndASpeedInPlaceOfTheTargetsOwn) {
  const Quotation longer = Of(30'000, absl::Seconds(800));
  EXPECT_EQ(longer.replicas, 1);
  EXPECT_EQ(longer.finish, At(750));
  EXPECT_EQ(longer.deadline, At(800));
  const auto faster = Quote({30'000, std::nullopt, 400.0}, observation, options);
  EXPECT_EQ(faster->finish, At(75));
}

TEST_F(QuoteTest, CountsReplicasThatStartAlready) {
  observation.fleet.starting = {At(10), At(10)};
  const Quotation quotation = Of(30'000);
  EXPECT_EQ(quotation.replicas_now, 3);
  EXPECT_EQ(quotation.replicas, 3);
  EXPECT_EQ(quotation.finish, At(10 + (30'000 - 400) / 120.0));
  EXPECT_THAT(quotation.explanation, HasSubstr("by the 3 replicas there"));
}

TEST_F(QuoteTest, NeedsASpeed) {
  for (const double rate : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    observation.estimates.items_per_second = rate;
    EXPECT_TRUE(absl::IsUnavailable(Try(10).status())) << rate;
    EXPECT_TRUE(Quote({10, std::nullopt, 40.0}, observation, options).ok());
  }
}

TEST_F(QuoteTest, RefusesWorkThatIsNone) {
  for (const int64_t items :
       {int64_t{0}, int64_t{-1}, kMaxQuotedItems + 1, std::numeric_limits<int64_t>::min()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Try(items).status())) << items;
  }
  for (const absl::Duration sla :
       {absl::ZeroDuration(), absl::Seconds(-1), absl::InfiniteDuration()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Quote({1, sla}, observation, options).status())) << sla;
  }
  for (const double rate : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(Quote({1, std::nullopt, rate}, observation, options).status()))
        << rate;
  }
  options.sla = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsInvalidArgument(Try(1).status()));
  EXPECT_TRUE(Quote({1, absl::Seconds(60)}, observation, options).ok());
}

TEST_F(QuoteTest, AnswersForOneItemAndForTenBillion) {
  EXPECT_EQ(Of(1).finish, At(1)) << "an item takes its service time";
  EXPECT_EQ(Of(1).replicas, 1);
  const Quotation much = Of(kMaxQuotedItems);
  EXPECT_FALSE(much.feasible);
  EXPECT_EQ(much.needs, 925'926) << "(10^10 - 12,000) / (40 · 270) and the one there";
  EXPECT_EQ(much.replicas, 1000);
  EXPECT_NEAR(Seconds(much.finish - At(0)), 30 + (1e10 - 1200) / 40'000, 1e-3);
}

// A replica does 40 items a second: a week's promise needs two billionths of one.
TEST_F(QuoteTest, QuotesOneReplicaForNextToNothing) {
  observation.fleet = Fleet();
  const Quotation quotation = Of(1, absl::Hours(24 * 7));
  EXPECT_TRUE(quotation.feasible);
  EXPECT_EQ(quotation.replicas, 1);
  EXPECT_LT(quotation.finish, At(60));
}

TEST_F(QuoteTest, NeverEndsWhereNobodyMayWork) {
  observation.bounds.max = 0;
  const Quotation quotation = Of(100);
  EXPECT_FALSE(quotation.feasible);
  EXPECT_EQ(quotation.finish, absl::InfiniteFuture());
  EXPECT_EQ(quotation.late_by, absl::InfiniteDuration());
  EXPECT_EQ(quotation.replicas_now, 1);
  EXPECT_EQ(quotation.replicas, 0) << "the one that is there will go";
  EXPECT_EQ(quotation.needs, 1);
  EXPECT_EQ(quotation.shortest_sla, std::nullopt);
  EXPECT_THAT(quotation.explanation,
              StartsWith("Never done: no replica may work on it. It needs 1 "));
}

TEST_F(QuoteTest, KeepsTheShortestPromiseThatTakesAsManyAsAnybodyMayHave) {
  Ready(0);
  observation.bounds.max = 1'000'000;
  observation.estimates.items_per_second = 0.001;
  observation.estimates.cold_start = absl::ZeroDuration();
  observation.estimates.service_time = absl::Milliseconds(1);
  const std::optional<absl::Duration> shortest = Of(1, absl::Minutes(5)).shortest_sla;
  ASSERT_EQ(shortest, absl::Milliseconds(1));
  const Quotation quotation = Of(1, *shortest);
  EXPECT_TRUE(quotation.feasible);
  EXPECT_EQ(quotation.needs, 1'000'000);
}

TEST_F(QuoteTest, SaysThatNoNumberWouldDoItWhereAColdStartIsLongerThanThePromise) {
  Ready(0);
  const Quotation quotation = Of(100, absl::Seconds(20));
  EXPECT_FALSE(quotation.feasible);
  EXPECT_EQ(quotation.needs, 0);
  EXPECT_GT(*quotation.shortest_sla, absl::Seconds(30));
  EXPECT_THAT(quotation.explanation, HasSubstr("No number of replicas would do it."));
  EXPECT_TRUE(Of(100, *quotation.shortest_sla).feasible);
}

TEST_F(QuoteTest, SaysThatAnItemTakesLongerThanThePromise) {
  const Quotation quotation = Of(1, absl::Milliseconds(500));
  EXPECT_FALSE(quotation.feasible);
  EXPECT_EQ(quotation.late_by, absl::Milliseconds(500));
  EXPECT_EQ(quotation.needs, 0);
  EXPECT_EQ(quotation.shortest_sla, absl::Seconds(1));
}

TEST_F(QuoteTest, GrowsNotWhereTheQueueThrottles) {
  observation.estimates.throttled_share = 0.1;
  const Quotation quotation = Of(30'000);
  EXPECT_EQ(quotation.replicas, 1);
  EXPECT_EQ(quotation.finish, At(750));
  EXPECT_EQ(quotation.shortest_sla, absl::Seconds(750));
  EXPECT_THAT(quotation.explanation, HasSubstr("more partitions would help"));
}

TEST_F(QuoteTest, CountsOnTasksThatWouldBeAddedBeforeReplicas) {
  observation.estimates.cpu_share = 0.4;
  observation.fleet.max_tasks = 2;
  const Quotation quotation = Of(24'000);
  EXPECT_EQ(quotation.replicas, 2);
  EXPECT_DOUBLE_EQ(quotation.replica_seconds, 24'000 / 80.0 + 30);
  EXPECT_EQ(Of(12'000).replicas, 1) << "two tasks do it";
}

TEST_F(QuoteTest, SaysWhenItDoesNotKnowWhatWaits) {
  Read(1'000'000);
  Now(121);
  EXPECT_THAT(Of(100).explanation, HasSubstr("What waits already is not known"));
  EXPECT_EQ(Of(100).finish, At(121 + 2.5));
  LoseStatistics();
  EXPECT_THAT(Of(100).explanation, HasSubstr("What waits already is not known"));
}

}  // namespace
}  // namespace muster::scaling::policy
