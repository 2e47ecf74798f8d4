// SPDX-License-Identifier: Apache-2.0

// How busy a listener says it is.
#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

class ListenerLoadTest : public ListenerTest {};

TEST_F(ListenerLoadTest, TellsTasksAtWorkAndTheirTime) {
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  options_.max_dequeue_tasks = 5;
  Create();
  Put("m");
  ASSERT_TRUE(listener_->StartListener(1).ok());
  gate.AwaitArrivals(1);
  clock_.Advance(absl::Seconds(2));
  ListenerLoad load = listener_->Load();
  EXPECT_EQ(load.max_dequeue_tasks, 5);
  EXPECT_EQ(load.times.tasks, 1);
  EXPECT_EQ(load.times.busy_tasks, 1);
  EXPECT_EQ(load.times.busy, absl::Seconds(2));
  EXPECT_EQ(load.times.service.count(), 0) << "nothing is answered yet";
  EXPECT_EQ(load.partitions.at(0).leased_messages, 1);
  EXPECT_EQ(listener_->counters().attempts, 1);
  gate.Open();
  AwaitSettled();
  load = listener_->Load();
  EXPECT_EQ(load.times.service.count(), 1);
  EXPECT_EQ(load.times.service.Mean(), absl::Seconds(2));
  EXPECT_EQ(load.partitions.at(0).leased_messages, 0);
  Finish();
  EXPECT_EQ(listener_->Load().times.tasks, 0);
}

TEST_F(ListenerLoadTest, AsksNothingOfTheStore) {
  Start();
  store_.AwaitCalls(Verb::kStats, 1);
  clock_.AwaitSleepers(1);
  const int looks = store_.calls(Verb::kStats);
  EXPECT_EQ(listener_->Load().partitions.at(0).ready, 0);
  EXPECT_EQ(store_.calls(Verb::kStats), looks);
  Finish();
}

TEST_F(ListenerLoadTest, TellsPartitionsAsItSawThemLast) {
  partitions_ = {{"acme", "input-0"}, {"acme", "input-1"}};
  Create();
  PutMany(3, 1);
  EXPECT_EQ(listener_->Load().partitions.at(1).ready, 0) << "not looked at yet";
  (void)listener_->QueryState();
  const ListenerLoad load = listener_->Load();
  EXPECT_EQ(load.partitions.at(0).ready, 0);
  EXPECT_EQ(load.partitions.at(1).queue.name, "input-1");
  EXPECT_EQ(load.partitions.at(1).ready, 3);
}

TEST_F(ListenerLoadTest, CountsAnAnswerThatIsNoSuccessToo) {
  handler_ = [&](Delivery&, DeliveryContext&) {
    return Outcome(Settlement::Kind::kDefer, absl::Hours(1));
  };
  Create();
  Put("m");
  ASSERT_TRUE(listener_->StartListener(1).ok());
  AwaitNotes(1);
  AwaitSettled();
  EXPECT_EQ(listener_->Load().times.service.count(), 1);
  Finish();
}

}  // namespace
}  // namespace muster::listener
