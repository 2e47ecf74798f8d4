// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/backlog_tracker.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "muster/scaling/policy/policy.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::scaling::policy {
namespace {

using ::testing::ElementsAre;

const absl::Time kLedgerStart = absl::FromUnixSeconds(1'000'000);

absl::Time Second(double seconds) { return kLedgerStart + absl::Seconds(seconds); }

QueueReading ReadingAt(double seconds, int64_t ready, int64_t in_flight = 0) {
  QueueReading reading;
  reading.at = Second(seconds);
  reading.ready = ready;
  reading.in_flight = in_flight;
  return reading;
}

class BacklogTrackerTest : public ::testing::Test {
 protected:
  void Announce(double seconds, int64_t items, uint64_t id = 0) {
    tracker_.Announce({Second(seconds), items, id});
  }

  void Read(double now, QueueReading reading) { tracker_.Reconcile({reading}, Second(now)); }

  // Returns "seconds:items" for each cohort.
  std::vector<std::pair<double, int64_t>> Cohorts() const {
    std::vector<std::pair<double, int64_t>> cohorts;
    for (const Cohort& cohort : tracker_.cohorts()) {
      cohorts.emplace_back(absl::ToDoubleSeconds(cohort.arrived - kLedgerStart), cohort.items);
    }
    return cohorts;
  }

  BacklogTracker tracker_{absl::Milliseconds(500)};
};

using Known = std::pair<double, int64_t>;

TEST_F(BacklogTrackerTest, KeepsWhatIsAnnouncedOldestFirst) {
  Announce(2, 20);
  Announce(1, 10);
  EXPECT_THAT(Cohorts(), ElementsAre(Known(1, 10), Known(2, 20)));
  EXPECT_EQ(tracker_.items(), 30);
}

TEST_F(BacklogTrackerTest, JoinsWhatComesAtAboutTheSameTimeAndDatesItByTheFirst) {
  Announce(1, 10);
  Announce(1.4, 20);
  Announce(1.6, 40);
  EXPECT_THAT(Cohorts(), ElementsAre(Known(1, 30), Known(1.6, 40)));
}

TEST_F(BacklogTrackerTest, LetsFinishedItemsLeaveTheOldestCohortFirst) {
  Announce(1, 10);
  Announce(5, 20);
  Read(6, ReadingAt(6, 10, 5));
  EXPECT_THAT(Cohorts(), ElementsAre(Known(5, 15)));
}

TEST_F(BacklogTrackerTest, FindsWorkWhoseAnnouncementWasLost) {
  QueueReading reading = ReadingAt(10, 30);
  reading.oldest_age = absl::Seconds(4);
  Read(10, reading);
  EXPECT_THAT(Cohorts(), ElementsAre(Known(6, 30)));
}

TEST_F(BacklogTrackerTest, DatesFoundWorkNoEarlierThanTheReadingThatDidNotShowIt) {
  Announce(1, 10);
  Read(2, ReadingAt(2, 10));
  QueueReading reading = ReadingAt(3, 25);
  reading.oldest_age = absl::Seconds(2);  // of the ten, which still wait
  Read(3, reading);
  EXPECT_THAT(Cohorts(), ElementsAre(Known(1, 10), Known(2, 15)));
}

TEST_F(BacklogTrackerTest, TellsLostAnnouncementsFromUnfinishedWorkByTheTotals) {
  Announce(1, 100);
  QueueReading reading = ReadingAt(2, 100);
  reading.total_in = 100;
  Read(2, reading);
  // A hundred items were done, and a hundred came without an announcement: as many wait as before.
  reading = ReadingAt(12, 100);
  reading.total_in = 200;
  reading.total_out = 100;
  reading.oldest_age = absl::Seconds(3);
  Read(12, reading);
  EXPECT_THAT(Cohorts(), ElementsAre(Known(9, 100)));
}

TEST_F(BacklogTrackerTest, DoesNotCountAnIdTwice) {
  Announce(1, 10, 7);
  Announce(1, 10, 7);
  Announce(1.1, 10, 8);
  EXPECT_EQ(tracker_.items(), 20);
}

TEST_F(BacklogTrackerTest, TakesADoubleAnnouncementBackWithTheNextReading) {
  Announce(1, 10);
  Read(2, ReadingAt(2, 10));
  Announce(3, 50);
  Announce(3, 50);
  Read(4, ReadingAt(4, 60));
  EXPECT_EQ(tracker_.items(), 60);
}

TEST_F(BacklogTrackerTest, IgnoresAnAnnouncementThatTheReadingKnowsAlready) {
  Read(5, ReadingAt(5, 50));
  Announce(4, 50);
  EXPECT_EQ(tracker_.items(), 50);
}

TEST_F(BacklogTrackerTest, DoesNotLetAnOlderReadingEraseNewWork) {
  Announce(10, 100);
  Read(11, ReadingAt(9, 0));
  EXPECT_EQ(tracker_.items(), 100);
  Read(12, ReadingAt(8, 0));  // older than the last reading: ignored
  EXPECT_EQ(tracker_.items(), 100);
}

TEST_F(BacklogTrackerTest, DescribesTheTimeOfTheOldestOfItsReadings) {
  Announce(10, 100);
  tracker_.Reconcile({ReadingAt(9, 1), ReadingAt(11, 2)}, Second(11));
  EXPECT_EQ(tracker_.read_at(), Second(9));
  EXPECT_EQ(tracker_.items(), 103);
}

TEST_F(BacklogTrackerTest, TakesAReadingFromTheFutureAsOneOfNow) {
  Read(5, ReadingAt(500, 10));
  EXPECT_EQ(tracker_.read_at(), Second(5));
  Announce(6, 3);
  EXPECT_EQ(tracker_.items(), 13);
}

TEST_F(BacklogTrackerTest, CountsAnAnnouncementFromTheFutureOnce) {
  Announce(100, 10);
  Read(1, ReadingAt(1, 0));
  EXPECT_THAT(Cohorts(), ElementsAre()) << "it was put by now, and the reading does not know it";
  Read(2, ReadingAt(2, 10));
  EXPECT_EQ(tracker_.items(), 10);
}

TEST_F(BacklogTrackerTest, StaysUsableWhenTimeStepsBack) {
  Announce(100, 10);
  Read(101, ReadingAt(101, 10));
  tracker_.StepBack(Second(50));
  EXPECT_THAT(Cohorts(), ElementsAre(Known(50, 10)));
  Read(51, ReadingAt(51, 4));
  EXPECT_EQ(tracker_.items(), 4);
}

TEST_F(BacklogTrackerTest, RefusesGarbage) {
  Announce(1, 0);
  Announce(1, -5);
  tracker_.Announce({absl::InfiniteFuture(), 5});
  tracker_.Announce({absl::InfinitePast(), 5});
  EXPECT_EQ(tracker_.items(), 0);
  QueueReading reading = ReadingAt(2, -7, -9);
  reading.total_out = -1;
  reading.oldest_age = -absl::InfiniteDuration();
  Read(2, reading);
  EXPECT_EQ(tracker_.items(), 0);
}

TEST_F(BacklogTrackerTest, BearsTheLargestNumbers) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  Announce(1, kLargest);
  Announce(2, kLargest);
  EXPECT_EQ(tracker_.items(), kMaxItems);
  QueueReading reading = ReadingAt(3, kLargest, kLargest);
  reading.total_out = kLargest;
  reading.oldest_age = absl::InfiniteDuration();
  Read(3, reading);
  EXPECT_EQ(tracker_.items(), kMaxItems);
  Read(4, ReadingAt(4, 1));
  EXPECT_EQ(tracker_.items(), 1);
}

TEST_F(BacklogTrackerTest, MergesNeighboursBeyondItsBound) {
  for (int second = 0; second < 5000; ++second) Announce(second, 2);
  EXPECT_LE(tracker_.cohorts().size(), kMaxCohorts);
  EXPECT_EQ(tracker_.items(), 10'000);
  EXPECT_EQ(tracker_.cohorts().front().arrived, Second(0));
}

TEST_F(BacklogTrackerTest, AgreesWithEveryReadingWhateverWasAnnounced) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::UniformSource uniform = base::SeededUniform(seed);
  int64_t waiting = 0, out = 0;
  for (int second = 1; second < 2000; ++second) {
    const auto put = static_cast<int64_t>(uniform() * 50);
    waiting += put;
    if (uniform() < 0.7) Announce(second, put);
    if (uniform() < 0.1) Announce(second, put);
    const auto done = static_cast<int64_t>(uniform() * static_cast<double>(waiting));
    waiting -= done;
    out += done;
    QueueReading reading = ReadingAt(second, waiting);
    reading.total_out = out;
    Read(second, reading);
    ASSERT_EQ(tracker_.items(), waiting);
    int64_t sum = 0;
    absl::Time last = absl::InfinitePast();
    for (const Cohort& cohort : tracker_.cohorts()) {
      ASSERT_GT(cohort.items, 0);
      ASSERT_LE(last, cohort.arrived);
      last = cohort.arrived;
      sum += cohort.items;
    }
    ASSERT_EQ(sum, waiting);
    ASSERT_LE(last, Second(second));
  }
}

}  // namespace
}  // namespace muster::scaling::policy
