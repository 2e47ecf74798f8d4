// SPDX-License-Identifier: Apache-2.0

// Waiting without a task, on an engine that can wait: the open receives of an idle listener.
#include <string>
#include <vector>

#include "muster/listener/open_receives.h"
#include "muster/listener/trigger_sender.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/listener_fixture.h"
#include "tests/fakes/listener/waiting_store.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OpenReceiveTest : public ListenerTest {
 protected:
  OpenReceiveTest() {
    listened_ = &waiting_;
    options_.safety_check_interval = absl::Seconds(30);
  }
  ~OpenReceiveTest() override { listener_.reset(); }

  // Waits until the listener has made its first check, and waits for messages.
  void StartAndWait(int receives = 1) {
    Start();
    waiting_.AwaitBegun(receives);
    clock_.AwaitSleepers(1);
  }
  // Waits until the listener has no task, and has opened so many receives in all.
  void AwaitIdle(int receives) {
    waiting_.AwaitBegun(receives);
    AwaitTasks(0);
  }

  testing::WaitingStore waiting_{&store_};
  const absl::Duration began_ = clock_.Monotonic();
};

TEST_F(OpenReceiveTest, BringsAMessageWithoutATriggerALookOrAPull) {
  StartAndWait();
  const int looks = store_.calls(Verb::kStats);
  Put("a");
  EXPECT_TRUE(waiting_.Deliver(partitions_[0]));
  store_.AwaitDeleted(partitions_[0], 1);
  EXPECT_THAT(notes(), ElementsAre("a#1"));
  EXPECT_EQ(store_.calls(Verb::kStats), looks);
  EXPECT_EQ(listener_->counters().wakeups_push, 1);
  EXPECT_EQ(listener_->counters().wakeups_safety, 0);
  EXPECT_EQ(listener_->counters().triggers_heard, 0);
}

TEST_F(OpenReceiveTest, IsOpenedAgainWhenTheTaskFindsTheQueueEmptyOnce) {
  StartAndWait();
  Put("a");
  ASSERT_TRUE(waiting_.Deliver(partitions_[0]));
  AwaitIdle(2);
  // The message, and one look of the task that found nothing more.
  EXPECT_EQ(listener_->counters().receives_empty, 1);
  EXPECT_EQ(waiting_.open(), 1u);
  Put("b");
  EXPECT_TRUE(waiting_.Deliver(partitions_[0]));
  store_.AwaitDeleted(partitions_[0], 2);
}

TEST_F(OpenReceiveTest, TakesTheRestOfABurstByLooksOfTheTask) {
  StartAndWait();
  PutMany(20);
  ASSERT_TRUE(waiting_.Deliver(partitions_[0]));
  store_.AwaitDeleted(partitions_[0], 20);
  Finish();
  EXPECT_EQ(listener_->counters().messages_done, 20);
}

TEST_F(OpenReceiveTest, IsRenewedOnlyWhenItsTimeIsUp) {
  StartAndWait();
  EXPECT_EQ(waiting_.patience(), 2 * options_.safety_check_interval);
  waiting_.End(partitions_[0], absl::NotFoundError("time is up"));
  waiting_.AwaitBegun(2);
  // A safety check makes no new one.
  const int looks = store_.calls(Verb::kStats);
  clock_.AwaitSleepers(1);
  clock_.Advance(1.25 * options_.safety_check_interval);
  store_.AwaitCalls(Verb::kStats, looks + 1);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(waiting_.begun(), 2);
}

// nats-server 2.9 does not always say that a pull has expired.
TEST_F(OpenReceiveTest, IsMadeAnewByASafetyCheckWhenItsEndWasLost) {
  StartAndWait();
  PassTimeUntil([&] { return waiting_.begun() == 2; }, absl::Seconds(1));
  EXPECT_GE(clock_.Monotonic() - began_, 2 * options_.safety_check_interval);
  EXPECT_EQ(waiting_.open(), 1u);
}

TEST_F(OpenReceiveTest, IsOpenedAgainSoonAfterAnError) {
  StartAndWait();
  waiting_.End(partitions_[0], absl::UnavailableError("the leader has changed"));
  AwaitNotes(1);
  EXPECT_THAT(notes(), ElementsAre("error UNAVAILABLE"));
  EXPECT_EQ(waiting_.begun(), 1);
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(1.1));
  waiting_.AwaitBegun(2);
  EXPECT_EQ(waiting_.open(), 1u);
}

TEST_F(OpenReceiveTest, LeavesAListenerAtWorkAsBeforeWhereItCannotBeOpened) {
  waiting_.Refuse(absl::NotFoundError("no queue"));
  StartAndWait();
  EXPECT_EQ(waiting_.open(), 0u);
  Put("a");
  Fire();
  store_.AwaitDeleted(partitions_[0], 1);
}

TEST_F(OpenReceiveTest, LeavesALostMessageToTheTriggerAfterAMoment) {
  StartAndWait();
  Put("a");
  Fire();  // and the open receive brings nothing
  clock_.AwaitSleepers(1);
  EXPECT_THAT(notes(), IsEmpty());
  clock_.Advance(absl::Milliseconds(20));
  store_.AwaitDeleted(partitions_[0], 1);
  EXPECT_EQ(listener_->counters().wakeups_push, 1);
}

TEST_F(OpenReceiveTest, SparesTheLookOfATriggerWhoseWorkItHasBrought) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  StartAndWait();
  const int looks = store_.calls(Verb::kStats);
  Put("a");
  Fire();
  ASSERT_TRUE(waiting_.Deliver(partitions_[0]));
  gate.AwaitArrivals(1);
  gate.Open();
  AwaitIdle(2);
  PassTimeUntil([&] { return store_.calls(Verb::kStats) > looks; }, absl::Milliseconds(100));
  EXPECT_GT(clock_.Monotonic() - began_, absl::Seconds(20)) << "the next look is a safety check";
}

TEST_F(OpenReceiveTest, StartsMoreTasksForTheRestOfABurst) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  options_.dequeue_batch_size = 1;
  StartAndWait();
  PutMany(5);
  ASSERT_TRUE(waiting_.Deliver(partitions_[0]));
  gate.AwaitArrivals(1);
  Fire(5);
  gate.AwaitArrivals(5);
  gate.Open();
  store_.AwaitDeleted(partitions_[0], 5);
  Finish();
}

TEST_F(OpenReceiveTest, TriesNoMessageWithoutAPlaceForATask) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  options_.max_dequeue_tasks = 1;
  partitions_ = {{"acme", "input"}, {"acme", "input-1"}};
  StartAndWait(2);
  Put("a", 0);
  Put("b", 1);
  ASSERT_TRUE(waiting_.Deliver(partitions_[0]));
  gate.AwaitArrivals(1);
  EXPECT_FALSE(waiting_.Deliver(partitions_[1])) << "it is ready again, for others";
  gate.Open();
  store_.AwaitDeleted(partitions_[1], 1);
  Finish();
}

TEST_F(OpenReceiveTest, OfManyPartitionsAreFew) {
  for (int i = 1; i < 10; ++i) partitions_.push_back({"acme", absl::StrCat("input-", i)});
  StartAndWait(kMaxOpenReceives);
  EXPECT_EQ(waiting_.begun(), kMaxOpenReceives);
  EXPECT_EQ(waiting_.open(), static_cast<size_t>(kMaxOpenReceives));
  for (const queue::QueueId& partition : partitions_) EXPECT_LE(waiting_.open(partition), 1);
}

TEST_F(OpenReceiveTest, IsLeftToOthersWhereManyWait) {
  waiting_.SetOthers(kMaxWaitsOfQueue);
  Start();
  store_.AwaitCalls(Verb::kStats, 1);
  clock_.AwaitSleepers(1);
  EXPECT_EQ(waiting_.begun(), 0);
  waiting_.SetOthers(kMaxWaitsOfQueue - 1);
  PassTimeUntil([&] { return waiting_.begun() == 1; }, absl::Seconds(1));
}

TEST_F(OpenReceiveTest, EndsAtOnceWithTheListenerAndWithAPause) {
  StartAndWait();
  listener_->Pause();
  EXPECT_EQ(waiting_.open(), 0u);
  Put("a");
  EXPECT_FALSE(waiting_.Deliver(partitions_[0]));
  listener_->Resume();
  store_.AwaitDeleted(partitions_[0], 1);
  AwaitIdle(2);
  Finish();
  EXPECT_EQ(waiting_.open(), 0u);
}

TEST_F(OpenReceiveTest, GivesAMessageBackThatComesAsTheListenerStops) {
  StartAndWait();
  Put("a");
  std::thread stopper([&] { Finish(); });
  waiting_.Deliver(partitions_[0]);
  stopper.join();
  // Worked on, or ready for others: never left to its lease.
  const auto stats = store_.Stats(partitions_[0]).value();
  EXPECT_EQ(stats.ready + static_cast<int64_t>(store_.deleted(partitions_[0]).size()), 1);
}

TEST_F(OpenReceiveTest, LooksForAMessageThatTheEngineCouldOnlyAnnounce) {
  StartAndWait();
  Put("a");
  waiting_.End(partitions_[0], absl::AbortedError("receive it"));
  store_.AwaitDeleted(partitions_[0], 1);
  EXPECT_EQ(listener_->counters().wakeups_push, 1);
}

// Otherwise the message would come to any listener that waits, again and again.
TEST_F(OpenReceiveTest, IsClosedWhileAListenerStaysAwayFromMessagesThatItLeftToOthers) {
  std::atomic<bool> fits = false;
  handler_ = [&](Delivery&, DeliveryContext&) {
    return fits.exchange(true) ? Ok() : ForOthers("v2");
  };
  Gate looked;
  store_.SetAfterHook([&](Verb verb, const queue::QueueId&) {
    if (verb == Verb::kReceive && fits) looked.Pass();
  });
  StartAndWait();
  Put("a");
  ASSERT_TRUE(waiting_.Deliver(partitions_[0]));
  looked.AwaitArrivals(1);
  // The listener knows when to announce the message: it is put back.
  while (clock_.NextDeadline() > began_ + absl::Seconds(10)) base::LetOthersRun();
  looked.Open();
  PassTimeUntil([&] { return waiting_.begun() == 2; }, absl::Seconds(1));
  EXPECT_GE(clock_.Monotonic() - began_, Handover::kStaysAway);
  Finish();
}

TEST_F(OpenReceiveTest, IsNotOpenedByAListenerThatKeepsAPoller) {
  options_.mode = DispatchMode::kPull;
  Start();
  AwaitTasks(1);
  clock_.AwaitSleepers(2);
  EXPECT_EQ(waiting_.begun(), 0);
  FinishAsTimePasses();
}

}  // namespace
}  // namespace muster::listener
