// SPDX-License-Identifier: Apache-2.0

// Waking up for unannounced work: the safety check, and delayed messages.
#include <atomic>
#include <string>

#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using ListenerSafetyTest = ListenerTest;

// A handler may take minutes, and the task that gave another message back may have left meanwhile.
TEST_F(ListenerSafetyTest, FindsWhatItGaveBackWhileItsOtherTasksAreBusyForLong) {
  Gate gate;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    if (delivery.message->body == "long") gate.Pass();
    if (delivery.message->body == "later" && delivery.message->dequeue_count == 1) {
      return Outcome(Settlement::Kind::kDefer, absl::Seconds(5));
    }
    return Ok();
  };
  events_.queue_empty = [](const QueueListener&, int) { return IdleDecision{.stop = true}; };
  StartAndSettleDown();
  Put("long");
  Fire();
  gate.AwaitArrivals(1);
  Put("later");
  Fire();
  AwaitNotes(2);
  AwaitTasks(1);
  while (clock_.NextDeadline() != clock_.Monotonic() + absl::Seconds(5)) base::LetOthersRun();
  clock_.Advance(absl::Seconds(5));
  store_.AwaitDeleted(partitions_[0], 1);
  gate.Open();
  Finish();
  EXPECT_EQ(listener_->counters().messages_done, 2);
}

TEST_F(ListenerSafetyTest, FindsWorkWhoseTriggerWasLostWhileItsTasksAreBusyForLong) {
  options_.visibility = absl::Minutes(10);
  Gate gate;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    if (delivery.message->body == "long") gate.Pass();
    return Ok();
  };
  StartAndSettleDown();
  Put("long");
  Fire();
  gate.AwaitArrivals(1);
  Put("lost");
  clock_.Advance(absl::Seconds(36));
  store_.AwaitDeleted(partitions_[0], 1);
  gate.Open();
  Finish();
  EXPECT_EQ(listener_->counters().messages_done, 2);
}

TEST_F(ListenerSafetyTest, TellsTheHostOfWorkThatItsBusyTasksDoNotSee) {
  options_.visibility = absl::Minutes(10);
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  events_.queue_work_detected = [](QueueListener& listener) {
    ASSERT_TRUE(listener.StartListener(1).ok());
  };
  StartAndSettleDown();
  Put("long");
  Fire();
  gate.AwaitArrivals(1);
  Put("lost");
  clock_.Advance(absl::Seconds(36));
  gate.AwaitArrivals(2);
  gate.Open();
  Finish();
  EXPECT_EQ(listener_->counters().messages_done, 2);
}

TEST_F(ListenerSafetyTest, ChecksNothingWhileAllTheTasksThatItMayHaveAreBusy) {
  options_.visibility = absl::Minutes(10);
  options_.max_dequeue_tasks = 1;
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  StartAndSettleDown();
  Put("long");
  Fire();
  gate.AwaitArrivals(1);
  const int looks = store_.calls(Verb::kStats);
  for (int check = 0; check < 3; ++check) {
    clock_.AwaitSleepers(2);  // the supervisor and the LeaseRenewer
    clock_.Advance(absl::Seconds(36));
  }
  clock_.AwaitSleepers(2);
  EXPECT_EQ(store_.calls(Verb::kStats), looks);
  gate.Open();
  Finish();
}

// Push mode, no poller, one lost trigger.
TEST_F(ListenerSafetyTest, FindsWorkWhoseTriggerWasLost) {
  StartAndSettleDown();
  Put("a");
  clock_.Advance(absl::Seconds(36));
  store_.AwaitDeleted(partitions_[0], 1);
  EXPECT_EQ(listener_->counters().wakeups_safety, 1);
  EXPECT_EQ(listener_->counters().wakeups_push, 0);
}

TEST_F(ListenerSafetyTest, LooksItselfWhereTheStoreCannotTellALeaseThatLapsed) {
  store_.BlurStats();
  Put("a");
  ASSERT_EQ(store_.Receive(partitions_[0], {1, absl::Seconds(30)})->size(), 1u);  // and dies
  Start();
  PassTimeUntil([&] { return !store_.deleted(partitions_[0]).empty(); });
  EXPECT_EQ(listener_->counters().wakeups_push, 0);
  Finish();
}

TEST_F(ListenerSafetyTest, LooksAgainSoonWhereSomebodyElseHoldsWorkAndMayBeDead) {
  options_.safety_check_interval = absl::Hours(24);
  store_.BlurStats();
  Put("a");
  ASSERT_EQ(store_.Receive(partitions_[0], {1, absl::Seconds(30)})->size(), 1u);  // and dies
  std::atomic<bool> looked_last = false;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    if (verb == Verb::kStats) looked_last = true;
    if (verb == Verb::kReceive) looked_last = false;
    return absl::OkStatus();
  });
  Start();
  PassTimeUntil([&] { return !store_.deleted(partitions_[0]).empty(); });
  EXPECT_LT(clock_.Monotonic(), absl::Hours(12));
  // No message is leased, so there is no reason to come back: the listener looks, and does not ask
  // the host.
  PassTimeUntil([&] { return tasks() == 0 && looked_last; });
  Finish();
  EXPECT_TRUE(looked_last);
}

TEST_F(ListenerSafetyTest, ComesBackForAMessageThatItDelayedItself) {
  options_.safety_check_interval = absl::Hours(24);
  handler_ = [](Delivery& delivery, DeliveryContext&) {
    return delivery.attempt == 1 ? Outcome(Settlement::Kind::kRetry, absl::Minutes(10)) : Ok();
  };
  StartAndSettleDown();
  Put("a");
  Fire();
  PassTimeUntil([&] { return notes().size() == 1 && tasks() == 0; });
  EXPECT_TRUE(store_.deleted(partitions_[0]).empty());
  PassTimeBetweenLeasesUntil([&] { return !store_.deleted(partitions_[0]).empty(); },
                             absl::Seconds(1));
  EXPECT_EQ(listener_->counters().wakeups_scheduled, 1);
  EXPECT_EQ(listener_->counters().wakeups_safety, 0);
  Finish();
}

TEST_F(ListenerSafetyTest, ComesBackForEachDelayOfWhatWasGivenBackTogether) {
  options_.safety_check_interval = absl::Hours(1);
  options_.work_rule = [](int64_t) { return 2; };
  Gate settling;
  std::atomic<bool> first = true;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    if (verb == Verb::kDelete && first.exchange(false)) settling.Pass();
    return absl::OkStatus();
  });
  handler_ = [](Delivery& delivery, DeliveryContext&) {
    const std::string& body = delivery.message->body;
    if (body == "now" || delivery.message->dequeue_count > 1) return Ok();
    return Outcome(Settlement::Kind::kDefer, body == "soon" ? absl::Seconds(5) : absl::Minutes(5));
  };
  events_.queue_empty = [](const QueueListener&, int) { return IdleDecision{.stop = true}; };
  StartAndSettleDown();
  Put("now");
  Fire();
  settling.AwaitArrivals(1);  // the settler waits at the gate; the other two are settled
  Put("soon");
  Put("late");
  Fire(2);
  AwaitNotes(3);
  AwaitTasks(0);
  settling.Open();
  AwaitSettled();
  clock_.Advance(absl::Seconds(5));
  store_.AwaitDeleted(partitions_[0], 2);
  AwaitSettled();
  clock_.Advance(absl::Seconds(295));
  store_.AwaitDeleted(partitions_[0], 3);
  EXPECT_EQ(store_.calls(Verb::kUpdate), 1);
  Finish();
}

}  // namespace
}  // namespace muster::listener
