// SPDX-License-Identifier: Apache-2.0

// Idleness: back-off, which task stays or leaves, errors, and the listener's plain verbs (req.
// 27–37, 40).
#include <pthread.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

class ListenerIdleTest : public ListenerTest {
 protected:
  void CreatePull() {
    options_.mode = DispatchMode::kPull;
    Create();
  }
};

TEST_F(ListenerIdleTest, BacksOffExponentiallyWithJitterUpToTheMaximum) {
  CreatePull();
  ASSERT_TRUE(listener_->StartListener(1).ok());
  for (const int doubled : {1, 3, 7}) {
    clock_.AwaitSleepers(1);
    const absl::Duration wait = clock_.NextDeadline() - clock_.Monotonic();
    EXPECT_GE(wait, absl::Milliseconds(10 + 80 * doubled));
    EXPECT_LT(wait, absl::Milliseconds(10 + 120 * doubled));
    clock_.Advance(wait);
  }
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(1));
}

// The papers' interval overflows after about 25 empty polls, and the last poller ends.
TEST_F(ListenerIdleTest, KeepsItsLastPollerPollingForever) {
  CreatePull();
  ASSERT_TRUE(listener_->StartListener(1).ok());
  for (int poll = 1; poll < 200; ++poll) {
    store_.AwaitCalls(Verb::kReceive, poll);
    clock_.AwaitSleepers(1);
    ASSERT_LE(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(1));
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(tasks(), 1);
}

TEST_F(ListenerIdleTest, LeavesExactlyOnePollerInPullMode) {
  CreatePull();
  ASSERT_TRUE(listener_->StartListener(6).ok());
  AwaitTasks(6);
  PassTimeUntil([&] { return tasks() == 1; });
  for (int poll = 0; poll < 20; ++poll) {
    clock_.AwaitSleepers(1);
    const int calls = store_.calls(Verb::kReceive);
    clock_.Advance(absl::Seconds(1));
    store_.AwaitCalls(Verb::kReceive, calls + 1);
  }
  EXPECT_EQ(tasks(), 1);
  EXPECT_EQ(listener_->QueryState().active_dequeue_tasks, 1);
  Finish();
}

TEST_F(ListenerIdleTest, StartsAPullListenerWithItsPoller) {
  options_.mode = DispatchMode::kPull;
  Start();
  AwaitTasks(1);
  EXPECT_EQ(listener_->QueryState().active_dequeue_tasks, 1);
}

// Each thread of the papers' polling loop makes 79,200 calls in these hours.
TEST_F(ListenerIdleTest, CostsALookPerSafetyCheckInTheIdleHoursOfADayHoweverManyTasksItMayHave) {
  options_.max_dequeue_tasks = 200;
  Start();
  store_.AwaitCalls(Verb::kStats, 1);
  const absl::Duration end = clock_.Monotonic() + absl::Hours(22);
  while (clock_.Monotonic() < end) {
    clock_.AwaitSleepers(1);
    const int looks = store_.calls(Verb::kStats);
    clock_.Advance(clock_.NextDeadline() - clock_.Monotonic());
    store_.AwaitCalls(Verb::kStats, looks + 1);
  }
  Finish();
  const int64_t calls = listener_->counters().storage_transactions();
  EXPECT_GE(calls, 22 * 100) << "one in 36 s at the least";
  EXPECT_LE(calls, 22 * 150 + 1) << "one in 24 s at the most";
  EXPECT_EQ(store_.calls(Verb::kReceive), 0);
}

TEST_F(ListenerIdleTest, LeavesNoneInPushModeAndThenCostsOneSafetyCheckPerInterval) {
  Start();
  store_.AwaitCalls(Verb::kStats, 1);
  ASSERT_TRUE(listener_->StartListener(4).ok());
  AwaitTasks(4);
  PassTimeUntil([&] { return tasks() == 0; });
  clock_.AwaitSleepers(1);
  const ListenerCounters before = listener_->counters();
  for (int check = 1; check <= 5; ++check) {
    const int calls = store_.calls(Verb::kStats);
    const absl::Duration wait = clock_.NextDeadline() - clock_.Monotonic();
    EXPECT_LE(wait, absl::Seconds(36));
    clock_.Advance(wait);
    store_.AwaitCalls(Verb::kStats, calls + 1);
    clock_.AwaitSleepers(1);
  }
  const ListenerCounters after = listener_->counters();
  EXPECT_EQ(after.storage_transactions() - before.storage_transactions(), 5);
  EXPECT_EQ(after.depth_checks_empty - before.depth_checks_empty, 5);
  EXPECT_EQ(tasks(), 0);
  Finish();
}

TEST_F(ListenerIdleTest, LooksAtAllPartitionsBeforeItCallsTheQueueEmpty) {
  partitions_ = {{"acme", "in-0"}, {"acme", "in-1"}, {"acme", "in-2"}};
  CreatePull();
  Put("a", 2);
  ASSERT_TRUE(listener_->StartListener(1).ok());
  store_.AwaitDeleted(partitions_[2], 1);
  store_.AwaitCalls(Verb::kReceive, 6);
  clock_.AwaitSleepers(2);  // the task, and the LeaseRenewer
  EXPECT_EQ(store_.calls(Verb::kReceive), 6);
}

TEST_F(ListenerIdleTest, AsksTheHostWhetherToStop) {
  std::vector<int> asked;  // by one task
  events_.queue_empty = [&](const QueueListener&, int idle_count) {
    asked.push_back(idle_count);
    return IdleDecision{.stop = idle_count == 3, .delay = absl::ZeroDuration()};
  };
  CreatePull();
  ASSERT_TRUE(listener_->StartListener(1).ok());
  PassTimeUntil([&] { return listener_->QueryState().active_dequeue_tasks == 0; });
  ASSERT_TRUE(listener_->Stop(absl::Seconds(1)).ok());
  EXPECT_EQ(asked, (std::vector<int>{1, 2, 3}));
}

TEST_F(ListenerIdleTest, ForgetsItsIdlenessWhenWorkComes) {
  std::atomic<int> last_idle = 0;
  events_.queue_empty = [&](const QueueListener&, int idle_count) {
    last_idle = idle_count;
    return IdleDecision{.stop = false, .delay = absl::Seconds(1)};
  };
  Create();
  ASSERT_TRUE(listener_->StartListener(1).ok());
  for (int poll = 1; poll <= 3; ++poll) {
    store_.AwaitCalls(Verb::kReceive, poll);
    clock_.AwaitSleepers(1);
    EXPECT_EQ(last_idle, poll);
    if (poll < 3) clock_.Advance(absl::Seconds(1));
  }
  Put("a");
  clock_.Advance(absl::Seconds(1));
  store_.AwaitCalls(Verb::kReceive, 5);
  clock_.AwaitSleepers(2);
  EXPECT_EQ(last_idle, 1);
  Finish();
}

TEST_F(ListenerIdleTest, TellsOfAnErrorAndGoesOnWhenItHasPassed) {
  std::atomic<bool> broken = true;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    return verb == Verb::kReceive && broken ? absl::NotFoundError("no such queue")
                                            : absl::OkStatus();
  });
  Create();
  Put("a");
  ASSERT_TRUE(listener_->StartListener(1).ok());
  AwaitNotes(1);
  EXPECT_EQ(notes()[0], "error NOT_FOUND");
  clock_.AwaitSleepers(1);
  for (int i = 0; i < 20; ++i) {  // it never leaves for an error
    clock_.Advance(absl::Seconds(1));
    AwaitNotes(i + 2);
    clock_.AwaitSleepers(1);
  }
  broken = false;
  clock_.Advance(absl::Seconds(1));
  store_.AwaitDeleted(partitions_[0], 1);
  Finish();
}

TEST_F(ListenerIdleTest, RetriesAFaultThatPassesBeforeItCallsItAnError) {
  std::atomic<int> faults = 2;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    return verb == Verb::kReceive && faults-- > 0 ? absl::UnavailableError("busy")
                                                  : absl::OkStatus();
  });
  Create();
  Put("a");
  ASSERT_TRUE(listener_->StartListener(1).ok());
  PassTimeUntil([&] { return !store_.deleted(partitions_[0]).empty(); });
  EXPECT_EQ(notes(), std::vector<std::string>{"a#1"});
  EXPECT_EQ(listener_->counters().receives_failed, 2);
  Finish();
}

TEST_F(ListenerIdleTest, AddsTasksWithEachStartUpToTheMaximum) {
  options_.max_dequeue_tasks = 5;
  CreatePull();
  EXPECT_TRUE(absl::IsInvalidArgument(listener_->StartListener(0)));
  EXPECT_TRUE(absl::IsInvalidArgument(listener_->StartListener(-1)));
  ASSERT_TRUE(listener_->StartListener(2).ok());
  AwaitTasks(2);
  ASSERT_TRUE(listener_->StartListener(2).ok());
  AwaitTasks(4);
  ASSERT_TRUE(listener_->StartListener(2).ok());
  AwaitTasks(5);
  const ListenerInfo info = listener_->QueryState();
  EXPECT_EQ(info.active_dequeue_tasks, 5);
  EXPECT_EQ(info.total_dequeue_tasks, 5);
}

TEST_F(ListenerIdleTest, ReportsDepthAndTheMostTasksThereWere) {
  CreatePull();
  ASSERT_TRUE(listener_->StartListener(3).ok());
  AwaitTasks(3);
  PassTimeUntil([&] { return tasks() == 1; });
  Finish();
  PutMany(7);
  const ListenerInfo info = listener_->QueryState();
  EXPECT_EQ(info.current_queue_depth, 7);
  EXPECT_EQ(info.active_dequeue_tasks, 0);
  EXPECT_EQ(info.total_dequeue_tasks, 3);
  EXPECT_EQ(info.unsettled_messages, 0);
}

TEST_F(ListenerIdleTest, ChangesItsSettingsWhileItRuns) {
  CreatePull();
  EXPECT_TRUE(absl::IsInvalidArgument(listener_->SetDequeueBatchSize(0)));
  EXPECT_TRUE(absl::IsInvalidArgument(listener_->SetDequeueBatchSize(33)));
  EXPECT_TRUE(listener_->SetDequeueBatchSize(1).ok());
  EXPECT_TRUE(
      absl::IsInvalidArgument(listener_->SetIdleIntervals(absl::Seconds(2), absl::Seconds(1))));
  EXPECT_TRUE(listener_->SetIdleIntervals(absl::Seconds(3), absl::Seconds(5)).ok());
  ASSERT_TRUE(listener_->StartListener(1).ok());
  clock_.AwaitSleepers(1);
  EXPECT_GT(clock_.NextDeadline() - clock_.Monotonic(), absl::Seconds(3));
}

TEST_F(ListenerIdleTest, RefusesOptionsThatAreOutOfBounds) {
  const auto create = [&](const std::function<void(ListenerOptions&)>& spoil) {
    ListenerOptions options;
    options.partitions = partitions_;
    spoil(options);
    return QueueListener::Create(
               options, {},
               [this]() -> absl::StatusOr<std::unique_ptr<Subscriber>> {
                 return std::make_unique<ScriptedSubscriber>(this);
               },
               &store_, nullptr, &clock_)
        .status();
  };
  EXPECT_TRUE(create([](ListenerOptions&) {}).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.partitions.clear(); }).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.partitions[0].name = "NO"; }).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.dequeue_batch_size = 33; }).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.max_dequeue_tasks = 0; }).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.max_attempts = 0; }).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.visibility = absl::ZeroDuration(); }).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.max_unsettled_messages = 0; }).ok());
  EXPECT_FALSE(create([](ListenerOptions& o) { o.minimum_idle_interval = absl::Seconds(2); }).ok());
}

TEST_F(ListenerIdleTest, TriesAgainWhenItsSubscriberCannotBeMade) {
  std::atomic<bool> broken = true;
  options_.partitions = partitions_;
  options_.mode = DispatchMode::kPull;
  events_.on_error = [this](const absl::Status&) { Note("error"); };
  listener_ = *QueueListener::Create(
      options_, events_,
      [&]() -> absl::StatusOr<std::unique_ptr<Subscriber>> {
        if (broken) return absl::NotFoundError("no such program");
        return std::make_unique<ScriptedSubscriber>(this);
      },
      &store_, &bus_, &clock_);
  ASSERT_TRUE(listener_->Start().ok());
  AwaitNotes(1);
  broken = false;
  PassTimeUntil([&] { return tasks() == 1; });
  Finish();
}

TEST_F(ListenerIdleTest, SurvivesAFactoryThatThrows) {
  options_.partitions = partitions_;
  events_.on_error = [this](const absl::Status& status) { Note(std::string(status.message())); };
  listener_ = *QueueListener::Create(
      options_, events_,
      []() -> absl::StatusOr<std::unique_ptr<Subscriber>> { throw std::runtime_error("no"); },
      &store_, &bus_, &clock_);
  ASSERT_TRUE(listener_->StartListener(1).ok());
  AwaitNotes(1);
  EXPECT_EQ(notes()[0], "making a subscriber: the factory threw: no");
  Finish();
}

// In particular, the listener must not hold a lock that the callback may need.
TEST_F(ListenerIdleTest, TellsWithoutALockHeldThatThereIsNoThreadForATask) {
  pthread_attr_t usual;
  pthread_attr_t gigantic;
  pthread_attr_init(&gigantic);
  pthread_attr_setstacksize(&gigantic, size_t{1} << 47);
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  events_.on_error = [&](const absl::Status& status) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    pthread_setattr_default_np(&usual);
    Note("error");
    EXPECT_TRUE(listener_->StartListener(1).ok());
  };
  CreatePull();
  ASSERT_EQ(pthread_setattr_default_np(&gigantic), 0);
  ASSERT_TRUE(listener_->StartListener(1).ok());
  AwaitTasks(1);
  EXPECT_EQ(notes().size(), 1u);
  Finish();
}

}  // namespace
}  // namespace muster::listener
