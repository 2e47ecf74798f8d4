// Waking up: triggers, work rules, safety check, and finding delayed work (req. 35, 38, 39, 41–45).
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "muster/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using ::testing::Contains;

class ListenerTriggerTest : public ListenerTest {
 protected:
  // Until the listener has made its first check and sleeps.
  void StartAndSettleDown() {
    Start();
    store_.AwaitCalls(Verb::kStats, 1);
    clock_.AwaitSleepers(1);
  }
};

TEST_F(ListenerTriggerTest, FindsTheWorkThatIsThereWhenItStarts) {
  Put("a");
  Start();
  store_.AwaitDeleted(partitions_[0], 1);
  Finish();
  EXPECT_EQ(listener_->counters().messages_done, 1);
}

TEST_F(ListenerTriggerTest, WorksWithoutTimePassingWhenATriggerComes) {
  StartAndSettleDown();
  Put("a");
  Fire();
  store_.AwaitDeleted(partitions_[0], 1);
  EXPECT_EQ(listener_->counters().wakeups_push, 1);
  EXPECT_EQ(listener_->counters().triggers_heard, 1);
}

TEST_F(ListenerTriggerTest, IgnoresTriggersOfOtherAccountsAndQueues) {
  StartAndSettleDown();
  ASSERT_TRUE(bus_.Publish(trigger::WorkDetected("x", "acme", "other", 1)).ok());
  ASSERT_TRUE(bus_.Publish(trigger::WorkDetected("x", "other", "input", 1)).ok());
  EXPECT_EQ(listener_->counters().triggers_heard, 0);
  EXPECT_EQ(store_.calls(Verb::kStats), 1);
}

TEST_F(ListenerTriggerTest, SpendsOneLookOnATriggerWhoseWorkOthersTook) {
  StartAndSettleDown();
  Fire();
  store_.AwaitCalls(Verb::kStats, 2);
  EXPECT_EQ(store_.calls(Verb::kReceive), 0);
  EXPECT_EQ(listener_->counters().wakeups_push, 0);
}

TEST_F(ListenerTriggerTest, StartsAsManyTasksAsTheRuleSays) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  StartAndSettleDown();
  PutMany(50);
  Fire(50);
  gate.AwaitArrivals(10);
  EXPECT_EQ(listener_->QueryState().active_dequeue_tasks, 10);
  gate.Open();
  store_.AwaitDeleted(partitions_[0], 50);
  Finish();
}

TEST_F(ListenerTriggerTest, StartsNoMoreTasksThanThereAreMessages) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  StartAndSettleDown();
  PutMany(3);
  Fire(3);
  gate.AwaitArrivals(3);
  EXPECT_EQ(listener_->QueryState().total_dequeue_tasks, 3);
  gate.Open();
  Finish();
}

TEST_F(ListenerTriggerTest, AddsTasksForATriggerThatComesWhileOthersAreBusy) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  StartAndSettleDown();
  Put("a");
  Fire();
  gate.AwaitArrivals(1);
  PutMany(2);
  Fire(2);
  gate.AwaitArrivals(3);
  EXPECT_EQ(listener_->QueryState().total_dequeue_tasks, 3);
  gate.Open();
  Finish();
}

TEST_F(ListenerTriggerTest, CountsOnNoTaskThatHasJustReceivedAnotherMessage) {
  Gate received;
  std::atomic<bool> first = true;
  store_.SetAfterHook([&](Verb verb, const queue::QueueId&) {
    if (verb == Verb::kReceive && first.exchange(false)) received.Pass();
  });
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  StartAndSettleDown();
  Put("a");
  Fire();
  received.AwaitArrivals(1);
  Put("b");
  const int looks = store_.calls(Verb::kStats);
  Fire();
  store_.AwaitCalls(Verb::kStats, looks + 1);
  clock_.AwaitSleepers(1);  // the supervisor, which has found a task with empty hands for b
  received.Open();
  AwaitNotes(1);
  clock_.Advance(absl::Milliseconds(10));  // no two looks are closer
  gate.AwaitArrivals(2);
  gate.Open();
  Finish();
  EXPECT_EQ(listener_->counters().messages_done, 2);
}

TEST_F(ListenerTriggerTest, LetsTheHostDecideWhatWorkDetectedMeans) {
  events_.queue_work_detected = [this](QueueListener& listener) {
    Note("detected");
    ASSERT_TRUE(listener.StartListener(2).ok());
  };
  StartAndSettleDown();
  Put("a");
  Fire();
  AwaitTasks(2);
  EXPECT_EQ(notes()[0], "detected");
}

TEST_F(ListenerTriggerTest, WakesASleepingPollerAndRaisesWorkDetectedAfterIdleness) {
  options_.mode = DispatchMode::kPull;
  events_.queue_work_detected = [this](QueueListener&) { Note("detected"); };
  Create();
  ASSERT_TRUE(listener_->Start().ok());
  AwaitTasks(1);
  clock_.AwaitSleepers(2);  // the poller and the supervisor
  Put("a");
  Fire();
  AwaitNotes(2);
  EXPECT_THAT(notes(), Contains("detected"));
  store_.AwaitDeleted(partitions_[0], 1);
}

TEST_F(ListenerTriggerTest, AsksForMoreTasksWhileItIsBusy) {
  options_.work_rule = [](int64_t depth) { return depth < 10 ? 1 : 3; };
  Gate first;
  Gate later;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    (delivery.message->body == "first" ? first : later).Pass();
    return Ok();
  };
  StartAndSettleDown();
  Put("first");
  Fire();
  first.AwaitArrivals(1);
  PutMany(20);
  clock_.Advance(absl::Seconds(1));
  first.Open();
  later.AwaitArrivals(3);
  EXPECT_EQ(listener_->QueryState().active_dequeue_tasks, 3);
  later.Open();
  store_.AwaitDeleted(partitions_[0], 21);
  Finish();
}

// A handler may take minutes, and the task that gave another message back may have left meanwhile.
TEST_F(ListenerTriggerTest, FindsWhatItGaveBackWhileItsOtherTasksAreBusyForLong) {
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
  while (clock_.NextDeadline() != clock_.Monotonic() + absl::Seconds(5)) std::this_thread::yield();
  clock_.Advance(absl::Seconds(5));
  store_.AwaitDeleted(partitions_[0], 1);
  gate.Open();
  Finish();
  EXPECT_EQ(listener_->counters().messages_done, 2);
}

TEST_F(ListenerTriggerTest, FindsWorkWhoseTriggerWasLostWhileItsTasksAreBusyForLong) {
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

TEST_F(ListenerTriggerTest, TellsTheHostOfWorkThatItsBusyTasksDoNotSee) {
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

TEST_F(ListenerTriggerTest, ChecksNothingWhileAllTheTasksThatItMayHaveAreBusy) {
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
    clock_.AwaitSleepers(2);  // the supervisor and the lease keeper
    clock_.Advance(absl::Seconds(36));
  }
  clock_.AwaitSleepers(2);
  EXPECT_EQ(store_.calls(Verb::kStats), looks);
  gate.Open();
  Finish();
}

// D3: push mode, no poller, one lost trigger.
TEST_F(ListenerTriggerTest, FindsWorkWhoseTriggerWasLost) {
  StartAndSettleDown();
  Put("a");
  clock_.Advance(absl::Seconds(36));
  store_.AwaitDeleted(partitions_[0], 1);
  EXPECT_EQ(listener_->counters().wakeups_safety, 1);
  EXPECT_EQ(listener_->counters().wakeups_push, 0);
}

TEST_F(ListenerTriggerTest, LooksItselfWhereTheStoreCannotTellALeaseThatLapsed) {
  store_.BlurStats();
  Put("a");
  ASSERT_EQ(store_.Receive(partitions_[0], {1, absl::Seconds(30)})->size(), 1u);  // and dies
  Start();
  PassTimeUntil([&] { return !store_.deleted(partitions_[0]).empty(); });
  EXPECT_EQ(listener_->counters().wakeups_push, 0);
  Finish();
}

TEST_F(ListenerTriggerTest, LooksAgainSoonWhereSomebodyElseHoldsWorkAndMayBeDead) {
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
  // With nothing in anybody's hands there is nothing to come back for: it looks, and asks nobody.
  PassTimeUntil([&] { return tasks() == 0 && looked_last; });
  Finish();
  EXPECT_TRUE(looked_last);
}

TEST_F(ListenerTriggerTest, ComesBackForAMessageThatItDelayedItself) {
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

TEST_F(ListenerTriggerTest, ComesBackForEachDelayOfWhatWasGivenBackTogether) {
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
  settling.AwaitArrivals(1);  // while the settler is held up, the other two are settled
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

TEST_F(ListenerTriggerTest, AnnouncesTheOutputsThatItPut) {
  handler_ = [](Delivery&, DeliveryContext&) { return Ok({"result"}); };
  StartAndSettleDown();
  const auto subscription = bus_.Subscribe([this](const trigger::InterRoleCommunicationEvent& e) {
    if (trigger::IsFor(e, "acme", "out")) Note("trigger out");
  });
  Put("a");
  Fire();
  AwaitNotes(2);
  EXPECT_THAT(notes(), Contains("trigger out"));
  store_.AwaitDeleted(partitions_[0], 1);
  Finish();
}

// D4: a get may not run twice, and the message counter may not race.
TEST_F(ListenerTriggerTest, DeliversAndCountsEveryMessageOnceOverManyTasksAndPartitions) {
  partitions_ = {{"acme", "in-0"}, {"acme", "in-1"}, {"acme", "in-2"}};
  StartAndSettleDown();
  for (int partition = 0; partition < 3; ++partition) PutMany(200, partition);
  Fire(200, 0);
  for (int partition = 0; partition < 3; ++partition) {
    store_.AwaitDeleted(partitions_[partition], 200);
  }
  Finish();
  EXPECT_EQ(notes().size(), 600);
  const ListenerCounters counters = listener_->counters();
  EXPECT_EQ(counters.messages_received, 600);
  EXPECT_EQ(counters.messages_done, 600);
  EXPECT_EQ(counters.redeliveries, 0);
  EXPECT_EQ(counters.begins, 600);
  EXPECT_EQ(counters.receives_useful + counters.receives_empty, store_.calls(Verb::kReceive));
}

TEST_F(ListenerTriggerTest, HoldsNoMoreMessagesThanItMay) {
  options_.max_unsettled_messages = 4;
  Gate gate;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    if (verb == Verb::kDelete) gate.Pass();
    return absl::OkStatus();
  });
  StartAndSettleDown();
  PutMany(100);
  Fire(100);
  gate.AwaitArrivals(1);
  AwaitNotes(4);
  EXPECT_EQ(listener_->QueryState().unsettled_messages, 4);
  EXPECT_EQ(listener_->counters().messages_received, 4);
  gate.Open();
  store_.AwaitDeleted(partitions_[0], 100);
  Finish();
}

}  // namespace
}  // namespace muster::listener
