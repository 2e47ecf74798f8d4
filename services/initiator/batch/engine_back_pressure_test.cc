// SPDX-License-Identifier: Apache-2.0

// BatchEngine where the queue is full.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/initiator/batch_engine_fixture.h"

namespace muster::initiator::batch {
namespace {

using ledger::BatchState;
using ::testing::HasSubstr;

constexpr absl::Duration kLongerThanAnyPause = absl::Seconds(2);

// Counts the looks at the statistics of queues.
class WatchedStore final : public queue::InterceptedStore {
 public:
  using InterceptedStore::InterceptedStore;

  absl::StatusOr<queue::QueueStats> Stats(const queue::QueueId& queue) override {
    ++looks;
    return InterceptedStore::Stats(queue);
  }

  int looks = 0;
};

// A batch of items of ten records, on a queue that takes `bounds_`.
class EngineBackPressureTest : public BatchEngineTest {
 protected:
  void Restart() {
    engine_.reset();
    back_pressure_ = std::make_unique<BackPressure>(bounds_, &store_, &clock_);
    EngineDependencies dependencies = Dependencies();
    dependencies.stores.queues = &store_;
    dependencies.back_pressure = back_pressure_.get();
    engine_ = std::make_unique<BatchEngine>(number_, dependencies, job_queues_.get());
  }
  void BeginWithItems(int items) {
    BeginWithRecords(10 * items);
    Restart();
  }

  StepResult Step() {
    const auto step = engine_->Step({});
    EXPECT_TRUE(step.ok()) << step.status();
    return step.value_or(StepResult::kRefused);
  }
  StepResult StepLater() {
    clock_.Advance(kLongerThanAnyPause);
    return Step();
  }

  int64_t Queued() {
    int64_t queued = 0;
    for (const queue::QueueId& id : inputs_) {
      const auto stats = queues_->Stats(id);
      queued += stats->ready + stats->in_flight;
    }
    return queued;
  }
  // Workers finish up to `items`, which are counted.
  void WorkOff(int items) {
    for (const queue::QueueId& id : inputs_) {
      const auto messages = *queues_->Receive(id, {32});
      std::vector<queue::UpdateRequest> back;
      for (const queue::Message& message : messages) {
        if (items-- <= 0) {
          back.emplace_back().receipt = message.receipt;
          continue;
        }
        const uint64_t index = item::DecodeWorkItem(message.body, blobs_.get())->index;
        EXPECT_TRUE(done_.insert(index).second) << "item " << index << " was put twice";
        EXPECT_TRUE(queues_->Delete(id, {message.receipt})->front().ok());
        Count({index});
      }
      if (back.empty()) continue;
      EXPECT_TRUE(queues_->Update(id, back).ok());
    }
  }

  BackPressureOptions bounds_{.max_items = 4};
  WatchedStore store_{queues_.get()};
  std::unique_ptr<BackPressure> back_pressure_;
  std::set<uint64_t> done_;
};

TEST_F(EngineBackPressureTest, PutsNoMoreThanTheQueueTakesAndSealsWhatIsSplit) {
  BeginWithItems(40);
  EXPECT_EQ(Step(), StepResult::kHeldBack);
  EXPECT_EQ(Queued(), 4);
  const auto batch = ledger_->Get(number_);
  EXPECT_EQ(batch->state, BatchState::kSealed);
  EXPECT_EQ(batch->items, 40u);
  EXPECT_EQ(batch->transactions, 400u);
  EXPECT_EQ(batch->enqueued_items, 4u);
  EXPECT_EQ(engine_->split_progress()->transactions_read, 400u);
  EXPECT_EQ(engine_->split_progress()->transactions_enqueued, 40u);
  EXPECT_EQ(engine_->hold().why,
            "its queue holds 4 items, the bound: it goes on when workers have worked some off");
  EXPECT_EQ(back_pressure_->counters().held_items, 36);
}

TEST_F(EngineBackPressureTest, PutsNoMoreBytesThanTheQueueTakes) {
  bounds_ = {.max_items = 1000, .max_bytes = 500};
  BeginWithItems(40);
  EXPECT_EQ(Step(), StepResult::kHeldBack);
  int64_t bytes = 0;
  int64_t messages = 0;
  for (const queue::QueueId& id : inputs_) {
    const auto messages_there = *queues_->Peek(id, 32);
    for (const queue::Message& message : messages_there) {
      bytes += static_cast<int64_t>(message.body.size());
      ++messages;
    }
  }
  EXPECT_GE(bytes, 500);
  EXPECT_LE(bytes - bytes / messages, 500) << "no more than the last one is beyond the bound";
  EXPECT_THAT(engine_->hold().why, HasSubstr("500B of messages"));
}

TEST_F(EngineBackPressureTest, GoesOnWhenWorkersHaveWorkedSomeOff) {
  BeginWithItems(40);
  EXPECT_EQ(Step(), StepResult::kHeldBack);
  EXPECT_EQ(StepLater(), StepResult::kHeldBack);
  EXPECT_EQ(Queued(), 4);
  WorkOff(3);
  EXPECT_EQ(StepLater(), StepResult::kHeldBack);
  EXPECT_EQ(Queued(), 4);
  EXPECT_EQ(ledger_->Get(number_)->enqueued_items, 7u);
  while (ledger_->Get(number_)->enqueued_items < 40) {
    WorkOff(4);
    StepLater();
  }
  EXPECT_EQ(engine_->split_progress()->transactions_enqueued, 400u);
  EXPECT_EQ(back_pressure_->counters().held_batches, 0);
  WorkOff(4);
  EXPECT_EQ(Step(), StepResult::kDone);
  EXPECT_EQ(done_.size(), 40u);
}

TEST_F(EngineBackPressureTest, ARunWaitsUntilTheQueueHasRoomAndEnds) {
  BeginWithItems(6);
  const auto ended = Run([&] {
    WorkOff(4);
    clock_.Advance(kInterval);
    clock_.AwaitSleepers(1);
    EXPECT_EQ(ledger_->Get(number_)->enqueued_items, 6u);
    WorkOff(2);
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, StepResult::kDone);
}

TEST_F(EngineBackPressureTest, ARunThatIsHeldBackStopsAtOnce) {
  BeginWithItems(6);
  EXPECT_TRUE(absl::IsCancelled(Run([&] { stop_.request_stop(); }).status()));
}

TEST_F(EngineBackPressureTest, ANewProcessGoesOnWhereTheOldOneWas) {
  bounds_.max_items = 64;
  BeginWithItems(100);
  EXPECT_EQ(Step(), StepResult::kHeldBack);
  EXPECT_EQ(ledger_->Get(number_)->enqueued_items, 64u);
  Restart();
  EXPECT_EQ(Step(), StepResult::kHeldBack);
  EXPECT_EQ(ledger_->Get(number_)->enqueued_items, 65u) << "before it has looked at the queue";
  for (int i = 0; i < 4; ++i) WorkOff(32);
  EXPECT_EQ(StepLater(), StepResult::kNeedsResults);
  for (int i = 0; i < 4; ++i) WorkOff(32);
  EXPECT_EQ(Step(), StepResult::kDone);
  EXPECT_EQ(done_.size(), 100u);
}

TEST_F(EngineBackPressureTest, AShortBatchIsPutWithoutALookAtTheQueue) {
  bounds_ = BackPressureOptions();
  BeginWithItems(40);
  EXPECT_EQ(Step(), StepResult::kNeedsResults);
  EXPECT_EQ(Queued(), 40);
  EXPECT_EQ(store_.looks, 0);
}

TEST_F(EngineBackPressureTest, PutsAgainWhatAQueueHasLostAlthoughAnotherBatchHasFilledIt) {
  BeginWithItems(4);
  EXPECT_EQ(Step(), StepResult::kNeedsResults);
  EXPECT_EQ(LoseMessages(), 4);
  for (int i = 0; i < 4; ++i) TrickleOn();
  StepLater();
  LoseMessages();
  ASSERT_TRUE(queues_->Clear(output_).ok());
  StepLater();
  EXPECT_EQ(ledger_->Get(number_)->refills, 1u);
  EXPECT_EQ(Queued(), 8 + 4);
}

// No worker takes them, so the queue would stay full for ever.
TEST_F(EngineBackPressureTest, ABatchThatNoWorkerFitsDoesNotKeepAFullQueueFull) {
  BeginWithItems(40);
  EXPECT_EQ(Step(), StepResult::kHeldBack);
  no_worker_fits_ = true;
  EXPECT_EQ(StepLater(), StepResult::kHeldBack);
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(absl::IsUnavailable(engine_->Step({}).status()));
  EXPECT_TRUE(suspended_.Contains(number_)) << "workers take its items out of the queue";
  EXPECT_EQ(back_pressure_->counters().held_batches, 0) << "those behind it have their turn";
  EXPECT_EQ(LoseMessages(), 4);
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(absl::IsUnavailable(engine_->Step({}).status()));
  EXPECT_EQ(Queued(), 0);
  no_worker_fits_ = false;
  EXPECT_EQ(Step(), StepResult::kHeldBack);
  EXPECT_EQ(Queued(), 4);
}

}  // namespace
}  // namespace muster::initiator::batch
