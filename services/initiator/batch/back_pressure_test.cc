// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/back_pressure.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::batch {
namespace {

using ::testing::HasSubstr;

// The statistics that the test says.
class StatsStore final : public queue::InterceptedStore {
 public:
  StatsStore() : InterceptedStore(nullptr) {}

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& queue) override {
    ++looks;
    if (!answer.ok()) return answer;
    return stats[queue.name];
  }

  std::map<std::string, queue::QueueStats> stats;
  absl::Status answer;
  int looks = 0;
};

// The bounds are 800 items and 80,000 bytes, so a share is 100 items and 10,000 bytes.
class BackPressureTest : public ::testing::Test {
 protected:
  BackPressure::Room Room(uint64_t batch = 1) {
    const auto room = back_pressure_.RoomFor(retail_, batch);
    EXPECT_TRUE(room.ok()) << room.status();
    return room.value_or(BackPressure::Room());
  }
  // Puts all that there is room for, one run of at most `run` items after the other, up to `items`.
  // Nothing is worked off meanwhile. Answers how many were put.
  int64_t PutUpTo(int64_t items, int64_t body_bytes = 10, int64_t run = 16) {
    int64_t put = 0;
    while (put < items) {
      const BackPressure::Room room = Room();
      if (room.empty()) break;
      const int64_t next = std::min({run, room.items, items - put});
      ready() += next;
      put += next;
      back_pressure_.NotePut(retail_, 1, next, next * body_bytes);
    }
    return put;
  }
  int64_t& ready() { return store_.stats["retail-in-0"].ready; }

  const std::vector<queue::QueueId> retail_ = {{"acme", "retail-in-0"}, {"acme", "retail-in-1"}};
  base::FakeClock clock_;
  StatsStore store_;
  BackPressure back_pressure_{{.max_items = 800, .max_bytes = 80'000}, &store_, &clock_};
};

TEST_F(BackPressureTest, AsksNoQueueForAShortBatch) {
  EXPECT_EQ(PutUpTo(10), 10);
  EXPECT_EQ(store_.looks, 0);
}

TEST_F(BackPressureTest, HoldsBackAtTheBoundOfItems) {
  EXPECT_EQ(PutUpTo(5000), 800);
  EXPECT_TRUE(Room().empty());
  EXPECT_THAT(back_pressure_.HoldBack(retail_[0], 1, 4200).why, HasSubstr("800 items"));
}

TEST_F(BackPressureTest, HoldsBackAtTheBoundOfBytes) {
  EXPECT_EQ(PutUpTo(5000, /*body_bytes=*/1000, /*run=*/1), 80);
  EXPECT_THAT(back_pressure_.HoldBack(retail_[0], 1, 4920).why, HasSubstr("80000B of messages"));
}

TEST_F(BackPressureTest, LooksOnceInAShareOfTheBound) {
  EXPECT_EQ(PutUpTo(700), 700);
  const auto partitions = static_cast<int>(retail_.size());
  EXPECT_LE(store_.looks, 9 * partitions);
  EXPECT_GE(store_.looks, 6 * partitions);
}

// Another initiator put them, and a worker has taken some.
TEST_F(BackPressureTest, CountsWhatOthersPutAndWhatWorkersHold) {
  ready() = 500;
  store_.stats["retail-in-1"].in_flight = 250;
  EXPECT_EQ(PutUpTo(5000), 50);
}

TEST_F(BackPressureTest, CountsNothingThatWaitsForItsTime) {
  store_.stats["retail-in-1"].delayed = 100'000;
  EXPECT_EQ(PutUpTo(200), 200);
}

TEST_F(BackPressureTest, AMissingQueueHoldsNothing) {
  EXPECT_EQ(PutUpTo(800), 800);
  store_.answer = absl::NotFoundError("no such queue");
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(Room().empty());
}

TEST_F(BackPressureTest, GoesOnOnceWorkersHaveWorkedAShareOff) {
  PutUpTo(5000);
  ready() = 750;
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Room().empty()) << "it would go on in small runs";
  ready() = 700;
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(PutUpTo(5000), 100);
}

TEST_F(BackPressureTest, LooksMoreSeldomAtAQueueThatStaysFull) {
  PutUpTo(5000);
  store_.looks = 0;
  for (int i = 0; i < 10'000; ++i) {
    clock_.Advance(absl::Milliseconds(1));
    EXPECT_TRUE(Room().empty());
  }
  EXPECT_LE(store_.looks, 15 * static_cast<int>(retail_.size()));
}

TEST_F(BackPressureTest, NoPutWaitsForALookThatFailsAndTheNextOneTellsWhy) {
  store_.answer = absl::UnavailableError("no server");
  back_pressure_.NotePut(retail_, 1, 1000, 1000);
  EXPECT_TRUE(absl::IsUnavailable(back_pressure_.RoomFor(retail_, 1).status()));
  store_.answer = absl::OkStatus();
  EXPECT_FALSE(Room().empty());
}

TEST_F(BackPressureTest, OnlyTheFirstInLineLooks) {
  PutUpTo(5000);
  EXPECT_EQ(back_pressure_.HoldBack(retail_[0], 1, 10).again_at,
            clock_.Monotonic() + absl::Milliseconds(50));
  EXPECT_EQ(back_pressure_.HoldBack(retail_[0], 2, 20).again_at, absl::InfiniteDuration());
  EXPECT_EQ(back_pressure_.HoldBack(retail_[0], 3, 30).again_at, absl::InfiniteDuration());
  ready() = 0;
  store_.looks = 0;
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Room(2).empty());
  EXPECT_TRUE(Room(4).empty()) << "it comes after those that wait";
  EXPECT_EQ(store_.looks, 0);
  EXPECT_FALSE(Room(1).empty());
  EXPECT_EQ(back_pressure_.Leave(retail_[0], 3), std::nullopt);
  EXPECT_EQ(back_pressure_.Leave(retail_[0], 1), 2u);
  EXPECT_FALSE(Room(2).empty());
  EXPECT_EQ(back_pressure_.Leave(retail_[0], 2), std::nullopt);
}

TEST_F(BackPressureTest, AnotherQueueIsFree) {
  PutUpTo(5000);
  back_pressure_.HoldBack(retail_[0], 1, 10);
  EXPECT_FALSE(back_pressure_.RoomFor({{"acme", "billing-in-0"}}, 2)->empty());
}

// Repairs put into a full queue, too.
TEST_F(BackPressureTest, CountsWhatIsPutIntoAFullQueue) {
  PutUpTo(5000);
  store_.looks = 0;
  ready() += 300;
  back_pressure_.NotePut(retail_, 9, 300, 300);
  EXPECT_EQ(store_.looks, 0);
  ready() -= 200;
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Room().empty());
}

TEST_F(BackPressureTest, TellsHowManyBatchesItHoldsBackAndForHowLong) {
  PutUpTo(5000);
  back_pressure_.HoldBack(retail_[0], 1, 100);
  clock_.Advance(absl::Seconds(2));
  back_pressure_.HoldBack(retail_[0], 1, 90);
  back_pressure_.HoldBack(retail_[0], 2, 7);
  back_pressure_.NotePut(retail_, 1, 30, 300);
  BackPressureCounters counters = back_pressure_.counters();
  EXPECT_EQ(counters.held_batches, 2);
  EXPECT_EQ(counters.held_items, 67);
  EXPECT_EQ(counters.holds, 2);
  EXPECT_EQ(counters.held_time, absl::Seconds(2));
  ASSERT_EQ(back_pressure_.HeldQueues(10).size(), 1u);
  EXPECT_EQ(back_pressure_.HeldQueues(10)[0].queue, retail_[0]);
  EXPECT_EQ(back_pressure_.HeldQueues(10)[0].items, 67);
  clock_.Advance(absl::Seconds(3));
  back_pressure_.Leave(retail_[0], 1);
  back_pressure_.Leave(retail_[0], 2);
  clock_.Advance(absl::Seconds(7));
  counters = back_pressure_.counters();
  EXPECT_EQ(counters.held_batches, 0);
  EXPECT_EQ(counters.held_items, 0);
  EXPECT_EQ(counters.holds, 2);
  EXPECT_EQ(counters.held_time, absl::Seconds(5));
  EXPECT_TRUE(back_pressure_.HeldQueues(10).empty());
}

}  // namespace
}  // namespace muster::initiator::batch
