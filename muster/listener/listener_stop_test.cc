// SPDX-License-Identifier: Apache-2.0

// Stopping and pausing: senders before receivers, no message lost, no thread left behind.
#include <atomic>
#include <thread>

#include "muster/base/retry.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ListenerStopTest : public ListenerTest {
 protected:
  const queue::QueueId& in() { return partitions_[0]; }

  // Until the Settler sleeps before another try. A count of sleepers would not tell: a task on its
  // way out may be one of them, and the Settler still in its call.
  void AwaitRetry() {
    while (clock_.NextDeadline() - clock_.Monotonic() > base::RetryOptions().initial_backoff) {
      base::LetOthersRun();
    }
  }
};

TEST_F(ListenerStopTest, StopsBeforeItStartsAndTwice) {
  events_.on_completed = [this] { Note("completed"); };
  Create();
  EXPECT_TRUE(listener_->Stop(absl::Seconds(1)).ok());
  EXPECT_TRUE(listener_->Stop(absl::Seconds(1)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(listener_->Start()));
  EXPECT_TRUE(absl::IsFailedPrecondition(listener_->StartListener(1)));
  listener_.reset();
  EXPECT_THAT(notes(), ElementsAre("completed"));
}

TEST_F(ListenerStopTest, TellsOfItsEndWithoutALockHeld) {
  events_.on_completed = [this] {
    std::thread([this] { EXPECT_TRUE(listener_->Stop(absl::ZeroDuration()).ok()); }).join();
    Note("completed");
  };
  Create();
  EXPECT_TRUE(listener_->Stop(absl::Seconds(1)).ok());
  EXPECT_THAT(notes(), ElementsAre("completed"));
}

TEST_F(ListenerStopTest, WakesSleepingPollersWithoutTimePassing) {
  options_.mode = DispatchMode::kPull;
  Start();
  AwaitTasks(1);
  clock_.AwaitSleepers(2);
  EXPECT_TRUE(listener_->Stop(absl::Seconds(1)).ok());
  EXPECT_EQ(tasks(), 0);
}

TEST_F(ListenerStopTest, SettlesWhatIsInHandAndReleasesTheRestAtOnce) {
  options_.max_dequeue_tasks = 1;
  Gate gate;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    if (delivery.message->body == "m1") gate.Pass();
    return Ok({delivery.message->body});
  };
  PutMany(3);  // the first is claimed alone, the others together
  Start();
  gate.AwaitArrivals(1);
  store_.AwaitDeleted(in(), 1);
  std::thread stopper([&] { EXPECT_TRUE(listener_->Stop(absl::Seconds(5)).ok()); });
  store_.AwaitCalls(Verb::kUpdate, 1);  // while m1's handler still works
  EXPECT_EQ(store_.Stats(in())->ready, 1);
  gate.Open();
  stopper.join();
  EXPECT_THAT(store_.deleted(in()), ElementsAre("m0", "m1"));
  const auto left = *store_.Receive(in(), {32, absl::Seconds(30)});
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left[0].attempts, 0);
  EXPECT_FALSE(left[0].interrupted);
  EXPECT_EQ(listener_->counters().messages_released, 1);
}

TEST_F(ListenerStopTest, TellsOtherListenersOfWhatItReleased) {
  Start();
  Gate gate;
  handler_ = [&](Delivery& delivery, DeliveryContext& context) {
    std::stop_callback callback(context.stop_token(), [&] { gate.Open(); });
    gate.Pass();
    return Outcome(Settlement::Kind::kRelease);
  };
  Put("a");
  Fire();
  gate.AwaitArrivals(1);
  const auto subscription = bus_.Subscribe([this](const bus::InterRoleCommunicationEvent& e) {
    if (bus::IsFor(e, "acme", "input")) Note("trigger in");
  });
  EXPECT_TRUE(listener_->Stop(absl::Seconds(5)).ok());
  EXPECT_THAT(notes(), Contains("trigger in"));
  const auto left = *store_.Receive(in(), {1, absl::Seconds(30)});
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left[0].attempts, 0);
}

TEST_F(ListenerStopTest, LeavesTheLeaseOfAHandlerThatOverrunsTheGraceToExpire) {
  Gate told_to_stop;
  Gate gate;
  handler_ = [&](Delivery& delivery, DeliveryContext& context) {
    std::stop_callback callback(context.stop_token(delivery), [&] { told_to_stop.Open(); });
    told_to_stop.Pass();
    Note("told");
    gate.Pass();
    return Ok({"too late"});
  };
  Put("a");
  Start();
  told_to_stop.AwaitArrivals(1);
  std::thread stopper(
      [&] { EXPECT_TRUE(absl::IsDeadlineExceeded(listener_->Stop(absl::Seconds(5)))); });
  AwaitNotes(2);
  clock_.AwaitSleepers(2);  // Stop, and the LeaseRenewer
  clock_.Advance(absl::Seconds(5));
  clock_.AwaitSleepers(0);  // the LeaseRenewer is gone: the grace is over
  gate.Open();
  stopper.join();
  EXPECT_THAT(store_.deleted(in()), IsEmpty());
  EXPECT_THAT(store_.put(output_), IsEmpty());
  EXPECT_EQ(listener_->counters().abandoned, 1);
  EXPECT_EQ(tasks(), 0);
}

// Otherwise each processor that is released would leave nearly finished work for others to repeat.
TEST_F(ListenerStopTest, APatientOneLetsSubscribersFinishWhatTheyHaveBegun) {
  options_.stops_patiently = true;
  Gate gate;
  handler_ = [&](Delivery& delivery, DeliveryContext& context) {
    gate.Pass();
    EXPECT_FALSE(context.stop_token(delivery).stop_requested());
    return Ok({"done"});
  };
  Put("a");
  Start();
  gate.AwaitArrivals(1);
  std::thread stopper([&] { EXPECT_TRUE(listener_->Stop(absl::Seconds(5)).ok()); });
  while (listener_->phase() != ListenerPhase::kDraining) base::LetOthersRun();
  clock_.AwaitSleepers(2);  // Stop, and the LeaseRenewer
  gate.Open();
  stopper.join();
  EXPECT_THAT(store_.deleted(in()), ElementsAre("a"));
  EXPECT_EQ(listener_->counters().messages_released, 0);
}

TEST_F(ListenerStopTest, APatientOneTellsSubscribersWhenTheGraceIsOver) {
  options_.stops_patiently = true;
  Gate told_to_stop;
  handler_ = [&](Delivery& delivery, DeliveryContext& context) {
    std::stop_callback callback(context.stop_token(delivery), [&] { told_to_stop.Open(); });
    told_to_stop.Pass();
    return Outcome(Settlement::Kind::kRelease);
  };
  Put("a");
  Start();
  told_to_stop.AwaitArrivals(1);
  std::thread stopper(
      [&] { EXPECT_TRUE(absl::IsDeadlineExceeded(listener_->Stop(absl::Seconds(5)))); });
  while (listener_->phase() != ListenerPhase::kDraining) base::LetOthersRun();
  clock_.AwaitSleepers(2);  // Stop, and the LeaseRenewer
  clock_.Advance(absl::Seconds(5));
  stopper.join();
  EXPECT_EQ(listener_->counters().abandoned, 1);
  EXPECT_EQ(tasks(), 0);
}

TEST_F(ListenerStopTest, GivesUpRetryingWhenTheGraceIsOver) {
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    return verb == Verb::kDelete ? absl::UnavailableError("gone") : absl::OkStatus();
  });
  Put("a");
  Start();
  store_.AwaitCalls(Verb::kDelete, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(listener_->Stop(absl::ZeroDuration())));
  EXPECT_EQ(listener_->counters().abandoned, 1);
}

// While a NATS server was away, a processor that was told to stop took 35 seconds, longer than its
// grace, and was ended with the word that a handler did not stop.
TEST_F(ListenerStopTest, EndsWithinTheGraceThoughTheStoreDoesNotAnswer) {
  store_.SetLongestCall(absl::Seconds(5));
  Put("a");
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    return verb == Verb::kPut || verb == Verb::kUpdate ? absl::UnavailableError("no server")
                                                       : absl::OkStatus();
  });
  handler_ = [&](Delivery&, DeliveryContext&) { return Ok({"done"}); };
  Start();
  store_.AwaitCalls(Verb::kPut, 2);  // the first one was the test's
  absl::Status stopped;
  std::thread stopper([&] { stopped = listener_->Stop(absl::Seconds(30)); });
  while (listener_->phase() != ListenerPhase::kDraining) base::LetOthersRun();
  clock_.AwaitSleepers(3);  // Stop, the LeaseRenewer and the Settler
  clock_.Advance(absl::Seconds(25));
  stopper.join();
  EXPECT_TRUE(absl::IsUnavailable(stopped)) << stopped;
  EXPECT_EQ(store_.calls(Verb::kUpdate), 0) << "it would take as long as the put";
  EXPECT_EQ(listener_->counters().abandoned, 1);
}

TEST_F(ListenerStopTest, SettlesWithinTheGraceWhenTheStoreIsBack) {
  store_.SetLongestCall(absl::Seconds(5));
  Put("a");
  std::atomic<bool> away = true;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    return away && verb == Verb::kPut ? absl::UnavailableError("no server") : absl::OkStatus();
  });
  handler_ = [&](Delivery&, DeliveryContext&) { return Ok({"done"}); };
  Start();
  store_.AwaitCalls(Verb::kPut, 2);  // the first one was the test's
  std::thread stopper([&] { EXPECT_TRUE(listener_->Stop(absl::Seconds(30)).ok()); });
  while (listener_->phase() != ListenerPhase::kDraining) base::LetOthersRun();
  AwaitRetry();
  away = false;
  clock_.Advance(absl::Seconds(20));
  stopper.join();
  EXPECT_THAT(store_.put(output_), ElementsAre("done"));
}

TEST_F(ListenerStopTest, SaysInWhichPhaseItIs) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  Start();
  EXPECT_EQ(listener_->phase(), ListenerPhase::kListening);
  listener_->Pause();
  EXPECT_EQ(listener_->phase(), ListenerPhase::kPaused);
  Put("a");
  listener_->Resume();
  EXPECT_EQ(listener_->phase(), ListenerPhase::kListening);
  gate.AwaitArrivals(1);
  std::thread stopper([&] { Finish(); });
  while (listener_->phase() != ListenerPhase::kDraining) base::LetOthersRun();
  gate.Open();
  stopper.join();
  EXPECT_EQ(listener_->phase(), ListenerPhase::kStopped);
}

TEST_F(ListenerStopTest, StartsMoreTasksForWaitingWorkOnceItMay) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  options_.dequeue_batch_size = 1;
  options_.max_dequeue_tasks = 1;
  options_.work_rule = [](int64_t) { return 3; };
  PutMany(3);
  Start();
  gate.AwaitArrivals(1);
  EXPECT_TRUE(absl::IsInvalidArgument(listener_->SetMaxDequeueTasks(0)));
  EXPECT_EQ(listener_->options().max_dequeue_tasks, 1);
  EXPECT_TRUE(listener_->SetMaxDequeueTasks(3).ok());
  EXPECT_EQ(listener_->options().max_dequeue_tasks, 3);
  gate.AwaitArrivals(3);
  gate.Open();
  Finish();
}

TEST_F(ListenerStopTest, TellsItsOptionsAsTheyAreNow) {
  Create();
  EXPECT_TRUE(listener_->SetDequeueBatchSize(5).ok());
  EXPECT_TRUE(listener_->SetIdleIntervals(absl::Milliseconds(2), absl::Seconds(3)).ok());
  const ListenerOptions now = listener_->options();
  EXPECT_EQ(now.dequeue_batch_size, 5);
  EXPECT_EQ(now.minimum_idle_interval, absl::Milliseconds(2));
  EXPECT_EQ(now.maximum_idle_interval, absl::Seconds(3));
  EXPECT_EQ(now.partitions, partitions_);
}

TEST_F(ListenerStopTest, ParksUntilItIsResumed) {
  options_.mode = DispatchMode::kPull;
  Start();
  AwaitTasks(1);
  listener_->Pause();
  AwaitTasks(0);
  Put("a");
  Fire();
  clock_.Advance(absl::Seconds(36));
  EXPECT_TRUE(absl::IsFailedPrecondition(listener_->StartListener(1)));
  EXPECT_EQ(store_.Stats(in())->ready, 1);
  listener_->Resume();
  store_.AwaitDeleted(in(), 1);
  EXPECT_EQ(tasks(), 1);
}

TEST_F(ListenerStopTest, StaysStoppedWhateverComesAfter) {
  Start();
  EXPECT_TRUE(listener_->Stop(absl::Seconds(1)).ok());
  listener_->Resume();
  Put("a");
  Fire();
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(store_.Stats(in())->ready, 1);
  EXPECT_EQ(tasks(), 0);
}

TEST_F(ListenerStopTest, StopsInTheMiddleOfABurst) {
  for (int round = 0; round < 20; ++round) {
    PutMany(200);
    Start();
    AwaitNotes(20 * (round + 1));
    listener_.reset();
    EXPECT_EQ(tasks(), 0);
  }
}

}  // namespace
}  // namespace muster::listener
