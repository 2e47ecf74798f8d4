// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/key_dispatcher.h"

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class KeyDispatcherTest : public ::testing::Test {
 protected:
  static HeldMessage Message(const std::string& key, uint64_t position, int partition = 0) {
    queue::Message message;
    message.body = "1234";
    return {std::make_shared<Lease>(message, partition, absl::ZeroDuration(), absl::Hours(1)), key,
            position};
  }
  bool Add(const std::string& key, int partition = 0) {
    return keys_.Add(Message(key, ++position_, partition));
  }
  absl::Duration now() const { return clock_.Monotonic(); }
  std::vector<std::string> Take(size_t max = 100) {
    std::vector<std::string> taken;
    for (const HeldMessage& message : keys_.Take(now(), max)) {
      taken.push_back(absl::StrCat(message.key, message.position));
      last_ = message;
    }
    return taken;
  }

  base::FakeClock clock_;
  KeyDispatcher keys_;
  uint64_t position_ = 0;
  HeldMessage last_;  // taken
};

TEST_F(KeyDispatcherTest, GivesTheOldestOfEachKey) {
  for (const char* key : {"a", "b", "a", "c", "b"}) Add(key);
  EXPECT_THAT(Take(), ElementsAre("a1", "b2", "c4"));
  EXPECT_THAT(Take(), IsEmpty()) << "each key has one that runs";
}

TEST_F(KeyDispatcherTest, GivesTheNextOfAKeyOnceTheOneBeforeIsSettled) {
  for (const char* key : {"a", "a", "b", "a"}) Add(key);
  EXPECT_THAT(Take(1), ElementsAre("a1"));
  keys_.Settled(0, "a");
  EXPECT_THAT(Take(), ElementsAre("b3", "a2"));
  keys_.Settled(0, "a");
  EXPECT_THAT(Take(), ElementsAre("a4"));
}

TEST_F(KeyDispatcherTest, ARetryHoldsUpItsKeyAlone) {
  for (const char* key : {"a", "a", "b", "b"}) Add(key);
  EXPECT_THAT(Take(1), ElementsAre("a1"));
  keys_.Keep(last_, now() + absl::Seconds(5));
  EXPECT_EQ(keys_.NextAt(), now() + absl::Seconds(5));
  EXPECT_THAT(Take(), ElementsAre("b3"));
  keys_.Settled(0, "b");
  EXPECT_THAT(Take(), ElementsAre("b4"));
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(Take(), ElementsAre("a1"));
  keys_.Settled(0, "a");
  EXPECT_THAT(Take(), ElementsAre("a2"));
  EXPECT_EQ(keys_.NextAt(), absl::InfiniteDuration());
}

TEST_F(KeyDispatcherTest, GivesMessagesOfOnePartitionAtATimeAndTakesTurns) {
  Add("a", 0);
  Add("b", 0);
  Add("c", 1);
  EXPECT_THAT(Take(1), ElementsAre("a1"));
  EXPECT_THAT(Take(1), ElementsAre("c3"));
  EXPECT_THAT(Take(1), ElementsAre("b2"));
}

TEST_F(KeyDispatcherTest, TellsWhatItHolds) {
  for (const char* key : {"a", "a", "b"}) Add(key);
  Take();
  EXPECT_EQ(keys_.held(0), 3u);
  EXPECT_EQ(keys_.running(0), 2u);
  EXPECT_EQ(keys_.held_bytes(0), 12u);
  keys_.Settled(0, "a");
  EXPECT_EQ(keys_.held(0), 2u);
  EXPECT_EQ(keys_.held_bytes(0), 8u);
  EXPECT_EQ(keys_.CountReady(now()), 1u);
}

TEST_F(KeyDispatcherTest, RefusesAPositionThatItHolds) {
  EXPECT_TRUE(keys_.Add(Message("a", 7)));
  EXPECT_FALSE(keys_.Add(Message("a", 7)));
  Take();
  EXPECT_FALSE(keys_.Add(Message("a", 7)));
  keys_.Settled(0, "a");
  EXPECT_TRUE(keys_.Add(Message("a", 7)));
}

TEST_F(KeyDispatcherTest, LetsNothingFollowWhatRunsOnceTheRestIsTakenAway) {
  for (const char* key : {"a", "a", "b"}) Add(key);
  EXPECT_THAT(Take(1), ElementsAre("a1"));
  EXPECT_EQ(keys_.TakeWaiting(0).size(), 2u);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(keys_.running(0), 1u);
  keys_.Settled(0, "a");
  EXPECT_EQ(keys_.held(0), 0u);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(KeyDispatcherTest, ForgetsAPartitionAlone) {
  Add("a", 0);
  Add("b", 1);
  Take(1);
  keys_.Forget(0);
  EXPECT_EQ(keys_.held(0), 0u);
  EXPECT_THAT(Take(), UnorderedElementsAre("b2"));
}

// Random keys, endings and retries: what runs of a key is one message at a time, in order.
TEST_F(KeyDispatcherTest, KeepsTheOrderOfEachKeyWhateverHappens) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  std::vector<HeldMessage> running;
  std::map<std::string, uint64_t> last;  // settled
  std::map<std::string, uint64_t> ended;
  for (int step = 0; step < 20000; ++step) {
    if (position_ < 5000 && below(2) == 0) Add(absl::StrCat("k", below(40)));
    for (HeldMessage& message : keys_.Take(now(), below(4))) {
      for (const HeldMessage& other : running) ASSERT_NE(other.key, message.key);
      ASSERT_GT(message.position, last[message.key]);
      running.push_back(std::move(message));
    }
    if (!running.empty() && below(3) > 0) {
      std::swap(running[below(running.size())], running.back());
      HeldMessage message = std::move(running.back());
      running.pop_back();
      if (below(4) == 0) {
        keys_.Keep(message, now() + absl::Seconds(below(20)));
      } else {
        last[message.key] = message.position;
        ++ended[message.key];
        keys_.Settled(0, message.key);
      }
    }
    clock_.Advance(absl::Milliseconds(below(500)));
  }
  uint64_t total = 0;
  for (const auto& [key, count] : ended) total += count;
  EXPECT_EQ(total + keys_.held(0), position_);
  EXPECT_GT(total, 1000u);
}

}  // namespace
}  // namespace muster::listener
