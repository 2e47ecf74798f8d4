// SPDX-License-Identifier: Apache-2.0

// Waking up for work that is announced: triggers and work rules.
#include <atomic>

#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using ::testing::Contains;

using ListenerTriggerTest = ListenerTest;

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
  ASSERT_TRUE(bus_.Publish(bus::WorkDetected("x", "acme", "other", 1)).ok());
  ASSERT_TRUE(bus_.Publish(bus::WorkDetected("x", "other", "input", 1)).ok());
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

TEST_F(ListenerTriggerTest, AnnouncesTheOutputsThatItPut) {
  handler_ = [](Delivery&, DeliveryContext&) { return Ok({"result"}); };
  StartAndSettleDown();
  const auto subscription = bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& e) {
    if (bus::IsFor(e, "acme", "out")) Note("trigger out");
  });
  Put("a");
  Fire();
  AwaitNotes(2);
  EXPECT_THAT(notes(), Contains("trigger out"));
  store_.AwaitDeleted(partitions_[0], 1);
  Finish();
}

// A get may not run twice, and the message counter may not race.
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
