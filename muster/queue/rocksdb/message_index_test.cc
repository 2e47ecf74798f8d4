// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/message_index.h"

#include <algorithm>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::queue::rocksdb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MessageState VisibleAt(int64_t us, uint8_t flags = 0, int64_t expiry_us = kNeverUs) {
  MessageState state;
  state.visible_us = us;
  state.expiry_us = expiry_us;
  state.flags = flags;
  return state;
}

TEST(MessageIndexTest, OrdersReadyMessagesByTimeThenSequence) {
  MessageIndex index;
  index.Insert(1, VisibleAt(20), 30);
  index.Insert(2, VisibleAt(10), 30);
  index.Insert(3, VisibleAt(10), 30);
  EXPECT_THAT(index.Ready(30, 10), ElementsAre(2, 3, 1));
  EXPECT_THAT(index.Ready(30, 2), ElementsAre(2, 3));
}

TEST(MessageIndexTest, TellsHeldFromDelayedUntilBothAreReady) {
  MessageIndex index;
  index.Insert(1, VisibleAt(10, kHeld), 0);
  index.Insert(2, VisibleAt(20), 0);
  EXPECT_EQ(index.CountsAt(0).held, 1);
  EXPECT_EQ(index.CountsAt(0).delayed, 1);
  EXPECT_EQ(index.CountsAt(10).ready, 1);
  EXPECT_EQ(index.CountsAt(20).ready, 2);
  EXPECT_EQ(index.CountsAt(20).held, 0);
}

TEST(MessageIndexTest, KeepsAMessageThatIsOutFromEverybodyElse) {
  MessageIndex index;
  index.Insert(1, VisibleAt(0, 0, 50), 0);
  index.CheckOut(1);
  EXPECT_TRUE(index.IsOut(1));
  EXPECT_THAT(index.Ready(10, 10), IsEmpty());
  EXPECT_EQ(index.CountsAt(10).ready, 1);  // still counted in its earlier state
  std::vector<uint64_t> expired;
  index.Expire(100, &expired);
  EXPECT_THAT(expired, IsEmpty());
  index.CheckIn(1, VisibleAt(0, 0, 50), 100);
  EXPECT_FALSE(index.IsOut(1));
  index.Expire(100, &expired);
  EXPECT_THAT(expired, ElementsAre(1));
  EXPECT_EQ(index.Find(1), nullptr);
}

TEST(MessageIndexTest, MovesOnInStepsAndGivesNothingThatHasExpired) {
  constexpr uint64_t kMany = 2 * MessageIndex::kMaxStep;
  MessageIndex index;
  for (uint64_t seq = 0; seq < kMany; ++seq) index.Insert(seq, VisibleAt(10, 0, 50), 0);
  index.Insert(kMany, VisibleAt(20), 0);
  EXPECT_EQ(index.CountsAt(20).ready, MessageIndex::kMaxStep);
  EXPECT_TRUE(index.IsBehind(20));
  std::vector<uint64_t> expired;
  index.Expire(50, &expired);
  EXPECT_EQ(expired.size(), kMany / 2);
  EXPECT_THAT(index.Ready(50, 1), IsEmpty());  // the search reaches only expired messages
  index.Expire(50, &expired);
  EXPECT_EQ(expired.size(), kMany);
  EXPECT_THAT(index.Ready(50, 1), ElementsAre(kMany));
  EXPECT_FALSE(index.IsBehind(50));
}

TEST(MessageIndexDeathTest, ChecksAMessageOutForOneCallAtATime) {
  MessageIndex index;
  index.Insert(7, VisibleAt(0), 0);
  index.CheckOut(7);
  EXPECT_DEATH(index.CheckOut(7), "sequence 7 is out already");
  EXPECT_DEATH(index.Clear(), "of 1 messages are 0 ready and 0 hidden");
  index.Erase(7);
  EXPECT_DEATH(index.Erase(7), "it != messages_.end\\(\\).*sequence 7");
}

TEST(MessageIndexDeathTest, NeverUsesASequenceTwice) {
  MessageIndex index;
  index.Insert(7, VisibleAt(0), 0);
  EXPECT_DEATH(index.Insert(7, VisibleAt(5), 0), "sequence 7 is in the index already");
  EXPECT_DEATH(index.CheckIn(7, VisibleAt(5), 0), "sequence 7 is in place 0");
}

// Random operations against a model that is too simple to be wrong.
TEST(MessageIndexTest, AgreesWithAPlainMap) {
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  MessageIndex index;
  std::map<uint64_t, MessageState> model;
  int64_t now = 0;
  uint64_t next_seq = 1;
  const auto random_state = [&] {
    return VisibleAt(now + static_cast<int64_t>(random() % 20) - 10,
                     static_cast<uint8_t>(random() % 2 == 0 ? kHeld : 0),
                     random() % 3 == 0 ? now + 1 + static_cast<int64_t>(random() % 30) : kNeverUs);
  };
  for (int step = 0; step < 3000; ++step) {
    now += random() % 4;
    std::vector<uint64_t> expired, model_expired;
    index.Expire(now, &expired);
    for (const auto& [seq, state] : model) {
      if (state.expiry_us <= now) model_expired.push_back(seq);
    }
    for (const uint64_t seq : model_expired) model.erase(seq);
    ASSERT_THAT(expired, testing::UnorderedElementsAreArray(model_expired));
    const auto picked = model.lower_bound(random() % next_seq);
    if (random() % 2 == 0 || picked == model.end()) {
      model[next_seq] = random_state();
      index.Insert(next_seq, model[next_seq], now);
      ++next_seq;
    } else {
      index.CheckOut(picked->first);
      if (random() % 2 == 0) {
        picked->second = random_state();
        index.CheckIn(picked->first, picked->second, now);
      } else {
        index.Erase(picked->first);
        model.erase(picked);
      }
    }
    MessageIndex::Counts counts;
    std::vector<std::pair<int64_t, uint64_t>> ready;
    for (const auto& [seq, state] : model) {
      if (state.visible_us <= now) ready.emplace_back(state.visible_us, seq);
      ++(state.visible_us <= now ? counts.ready : state.has(kHeld) ? counts.held : counts.delayed);
    }
    std::sort(ready.begin(), ready.end());
    std::vector<uint64_t> order;
    for (size_t i = 0; i < ready.size() && i < 5; ++i) order.push_back(ready[i].second);
    ASSERT_EQ(index.Ready(now, 5), order);
    ASSERT_EQ(index.CountsAt(now).ready, counts.ready);
    ASSERT_EQ(index.CountsAt(now).held, counts.held);
    ASSERT_EQ(index.CountsAt(now).delayed, counts.delayed);
  }
}

}  // namespace
}  // namespace muster::queue::rocksdb
