// SPDX-License-Identifier: Apache-2.0

// State that survives a restart, and guarantees among threads.
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "muster/base/mutex.h"
#include "tests/conformance/queue/queue_conformance.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::queue::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(QueueConformanceTest, KeepsMessagesAndTheirOrderOverARestart) {
  Put("a");
  Put("b");
  const PutResult c = Put("c");
  ASSERT_TRUE(Delete(ReceiveOne().receipt).ok());
  Restart();
  Put("d");
  ASSERT_TRUE(Delete(c.receipt).ok());  // receipts stay good
  EXPECT_THAT(ReceiveBodies(), ElementsAre("b", "d"));
}

TEST_P(QueueConformanceTest, KeepsLeasesOverARestart) {
  if (!traits().per_receive_visibility) GTEST_SKIP();
  Put("a");
  const Message message = ReceiveOne();
  Restart();
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  EXPECT_EQ(Stats().in_flight, 1);
  UpdateRequest extend;
  extend.receipt = message.receipt;
  extend.visibility = 2 * kVisibility;
  ASSERT_TRUE(Update(extend).ok());
  Advance(kVisibility);
  EXPECT_THAT(ReceiveBodies(), IsEmpty());
  Advance(kVisibility);
  EXPECT_EQ(ReceiveOne().dequeue_count, 2);
}

TEST_P(QueueConformanceTest, RefusesAStaleReceiptAfterARestart) {
  if (!traits().fenced_receipts) GTEST_SKIP();
  Put("a");
  const Receipt stale = ReceiveOne().receipt;
  Advance(kVisibility);
  Restart();
  ReceiveOne();
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(stale)));
}

TEST_P(QueueConformanceTest, KeepsAttemptsAndSuspicionOverARestart) {
  Put("a");
  ASSERT_TRUE(BeginAttempt(ReceiveOne().receipt).ok());
  Restart();
  Advance(kVisibility);
  const Message message = ReceiveOne();
  EXPECT_EQ(message.attempts, 1);
  EXPECT_TRUE(message.interrupted);
}

TEST_P(QueueConformanceTest, KeepsPoisonAndItsCauseOverARestart) {
  Put("bad");
  ASSERT_TRUE(DeadLetter(ReceiveOne().receipt, "why").ok());
  Restart();
  EXPECT_THAT(PoisonBodies(), ElementsAre("bad"));
  EXPECT_EQ(store_->ListPoison(queue_, "", 1)->front().cause.reason, "why");
  EXPECT_EQ(*store_->Redrive(queue_, {}, 1), 1);
  Restart();
  EXPECT_THAT(ReceiveBodies(), ElementsAre("bad"));
}

TEST_P(QueueConformanceTest, KeepsTotalsOverARestart) {
  if (!traits().exact_stats) GTEST_SKIP();
  for (int i = 0; i < 5; ++i) Put("m");
  const Receipt first = ReceiveOne().receipt;
  ASSERT_TRUE(Delete(first).ok());
  const Receipt stale = ReceiveOne().receipt;
  Advance(kVisibility);
  Receive(32);
  EXPECT_FALSE(Delete(stale).ok());
  const QueueStats before = Stats();
  Restart();
  const QueueStats after = Stats();
  EXPECT_EQ(after.total_in, 5);
  EXPECT_EQ(after.total_out, 1);
  EXPECT_EQ(after.stale_receipts, before.stale_receipts);
  EXPECT_EQ(after.in_flight, before.in_flight);
  EXPECT_EQ(after.ready, before.ready);
}

TEST_P(QueueConformanceTest, ItsExtentBeginsAtTheOldestMessageThatIsNotSettled) {
  EXPECT_EQ(Extent().oldest, Extent().next);
  const std::vector<PutResult> puts = PutAll(std::vector<NewMessage>(3));
  ASSERT_EQ(puts.size(), 3u);
  EXPECT_LT(puts[0].position, puts[1].position);
  EXPECT_LT(puts[1].position, puts[2].position);
  EXPECT_GT(Extent().next, puts[2].position);
  const std::vector<Message> held = Receive(3);
  ASSERT_EQ(held.size(), 3u);
  ASSERT_TRUE(Delete(held[1].receipt).ok());
  EXPECT_LE(Extent().oldest, puts[0].position) << "a lease holds it";
  ASSERT_TRUE(Release(held[0].receipt, absl::Hours(1)).ok());
  ASSERT_TRUE(DeadLetter(held[2].receipt, "poison").ok());
  EXPECT_LE(Extent().oldest, puts[0].position) << "a delayed message holds it";
  Restart();
  EXPECT_LE(Extent().oldest, puts[0].position);
  ASSERT_TRUE(store_->Clear(queue_).ok());
  EXPECT_GT(Extent().oldest, puts[2].position) << "poison does not hold it";
  EXPECT_EQ(Extent().oldest, Extent().next);
}

TEST_P(QueueConformanceTest, AnswersARepeatedPutWithThePositionOfTheFirst) {
  if (!traits().dedup) GTEST_SKIP();
  const NewMessage message{.body = "a", .dedup_id = "id"};
  const PutResult first = Put(message);
  Put("b");
  EXPECT_EQ(Put(message).position, first.position);
}

TEST_P(QueueConformanceTest, KeepsItsIncarnationUntilItIsMadeAnew) {
  const std::string before = Extent().incarnation;
  Put("a");
  ASSERT_TRUE(store_->Clear(queue_).ok());
  ASSERT_TRUE(store_->SetMetadata(queue_, {{"k", "v"}}).ok());
  Restart();
  EXPECT_EQ(Extent().incarnation, before);
  ASSERT_TRUE(store_->DeleteQueue(queue_).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Extent(queue_).status()));
  ASSERT_TRUE(store_->CreateQueue(queue_, {}).ok());
  EXPECT_NE(Extent().incarnation, before);
}

TEST_P(QueueConformanceTest, NeverGivesAMessageIdTwice) {
  std::set<std::string> ids;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) {
      const PutResult put = Put("m");
      EXPECT_TRUE(ids.insert(put.message_id).second) << put.message_id;
      ASSERT_TRUE(Delete(put.receipt).ok());
    }
    Restart();
  }
}

TEST_P(QueueConformanceTest, StaysUsableWhenTheWallClockWasSetBackWhileItWasDown) {
  Put("a");
  clock_.StepWallClock(-absl::Hours(24 * 365));
  Restart();
  EXPECT_THAT(ReceiveBodies(), ElementsAre("a"));
}

// Threads receive, extend, give back and delete at random. A body is in `held` while its holder
// relies on its lease; time stands still, so no lease lapses. So many threads that some of them
// often find nothing while others give messages back.
TEST_P(QueueConformanceTest, NeverLetsTwoReceiversShareALiveLease) {
  constexpr int kMessages = 400;
  constexpr int kThreads = 12;
  const uint32_t seed = base::testing::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (int i = 0; i < kMessages; ++i) Put(std::to_string(i));
  base::Mutex mu;
  absl::flat_hash_set<std::string> held, gone;
  std::atomic<int> gone_count = 0, shared = 0;
  std::atomic<bool> failed = false;
  const auto fail = [&](const char* call, const absl::Status& why) {
    failed = true;
    ADD_FAILURE() << call << ": " << why;
  };
  const auto work = [&](uint32_t thread) {
    std::mt19937 random(seed + thread);
    while (gone_count < kMessages && !failed) {
      const auto messages = store_->Receive(queue_, {static_cast<int>(1 + random() % 8)});
      if (!messages.ok()) fail("Receive", messages.status());
      for (const queue::Message& message : messages.value_or(std::vector<queue::Message>())) {
        {
          base::MutexLock lock(&mu);
          if (!held.insert(message.body).second) ++shared;
        }
        Receipt receipt = message.receipt;
        const bool extend = random() % 2 == 0, give_back = random() % 4 == 0;
        if (extend) {
          UpdateRequest request;
          request.receipt = receipt;
          request.visibility = kVisibility;
          const auto extended = store_->Update(queue_, {request});
          if (extended.ok() && extended->front().ok()) {
            receipt = extended->front()->receipt;
          } else {
            fail("extend", extended.ok() ? extended->front().status() : extended.status());
          }
        }
        {
          base::MutexLock lock(&mu);
          held.erase(message.body);
        }
        if (give_back) {
          UpdateRequest request;
          request.receipt = receipt;
          const auto given = store_->Update(queue_, {request});
          if (!given.ok()) fail("give back", given.status());
          if (given.ok() && !given->front().ok()) fail("give back", given->front().status());
        } else {
          const auto deleted = store_->Delete(queue_, {receipt});
          if (deleted.ok() && deleted->front().ok()) {
            base::MutexLock lock(&mu);
            const bool is_new = gone.insert(message.body).second;
            if (is_new) ++gone_count;
            EXPECT_TRUE(is_new) << message.body << " came again";
          } else {
            fail("Delete", deleted.ok() ? deleted->front() : deleted.status());
          }
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(gone_count, kMessages);
  // A JetStream server confirms a delete a moment before its counts show it.
  const absl::Time patience = absl::Now() + absl::Seconds(10);
  while (Stats().stored() > 0 && absl::Now() < patience) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(Stats().total_out, kMessages);
  EXPECT_EQ(Stats().stored(), 0);
}

TEST_P(QueueConformanceTest, LetsOneOfManyConcurrentPutsOfAnIdWin) {
  if (!traits().dedup) GTEST_SKIP();
  std::atomic<int> originals = 0, failed = 0;
  const auto put = [&] {
    for (int i = 0; i < 50; ++i) {
      NewMessage message;
      message.dedup_id = std::to_string(i);
      const auto result = store_->Put(queue_, {message});
      if (!result.ok()) ++failed;
      if (result.ok() && !result->front().duplicate) ++originals;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(put);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(originals, 50);
  EXPECT_EQ(Stats().stored(), 50);
}

// Puts, clears and snapshots side by side: a snapshot never shows a message twice or half a put.
TEST_P(QueueConformanceTest, ShowsWholePutsOnlyWhileOthersPutAndClear) {
  if (!traits().exact_stats) GTEST_SKIP();
  std::atomic<bool> done = false;
  std::atomic<int> failed = 0;
  std::thread putter([&] {
    for (int i = 0; i < 60; ++i) {
      if (!store_->Put(queue_, std::vector<NewMessage>(8)).ok()) ++failed;
    }
    done = true;
  });
  std::thread clearer([&] {
    while (!done) {
      if (!store_->Clear(queue_).ok()) ++failed;
    }
  });
  while (!done) {
    const auto stats = store_->Stats(queue_);
    if (!stats.ok() || stats->total_in % 8 != 0 || stats->stored() % 8 != 0) ++failed;
  }
  putter.join();
  clearer.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Stats().total_in, 480);
  const int64_t stored = Stats().stored();
  Restart();
  EXPECT_EQ(Stats().stored(), stored);  // memory and disk agree on what Clear left
}

}  // namespace

bool LinkRestartTests() { return true; }

}  // namespace muster::queue::conformance
