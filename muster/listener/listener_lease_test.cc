// SPDX-License-Identifier: Apache-2.0

// Leases that are kept, lost, or taken over.
#include <atomic>
#include <stop_token>
#include <vector>

#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A handler may take many times the visibility, on every task of the listener.
TEST_F(ListenerSettlementTest, KeepsTheLeaseOfAHandlerThatTakesLong) {
  options_.visibility = kShortLease;
  options_.max_dequeue_tasks = 1;
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  Put("a");
  Start();
  gate.AwaitArrivals(1);
  for (int renewal = 1; renewal <= 12; ++renewal) {
    clock_.AwaitSleepers(2);  // the LeaseRenewer and the supervisor
    clock_.Advance(absl::Seconds(10));
    store_.AwaitCalls(Verb::kUpdate, renewal);
    EXPECT_THAT(*store_.Receive(in(), {1, absl::Seconds(30)}), IsEmpty());
  }
  gate.Open();
  store_.AwaitDeleted(in(), 1);
  EXPECT_EQ(listener_->counters().stale_settles, 0);
  Finish();
}

TEST_F(ListenerSettlementTest, RenewsAllLeasesOfAPartitionInOneCall) {
  options_.visibility = kShortLease;
  Gate gate;
  options_.work_rule = [](int64_t) { return 5; };
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  PutMany(5);
  Start();
  gate.AwaitArrivals(5);
  clock_.AwaitSleepers(2);
  clock_.Advance(absl::Seconds(10));
  store_.AwaitCalls(Verb::kUpdate, 1);
  gate.Open();
  store_.AwaitDeleted(in(), 5);
  EXPECT_EQ(listener_->counters().lease_renewals, 1);
  Finish();
}

TEST_F(ListenerSettlementTest, StopsAHandlerWhoseLeaseIsLostAndCountsNothingOfIt) {
  options_.visibility = kShortLease;
  Gate gate;
  std::atomic<int> runs = 0;
  handler_ = [&](Delivery& delivery, DeliveryContext& context) {
    if (runs++ > 0) return Ok();
    std::stop_callback callback(context.stop_token(delivery), [&] { gate.Open(); });
    gate.Pass();
    return Ok({"of a lost lease"});
  };
  Put("a");
  Start();
  gate.AwaitArrivals(1);
  store_.BreakLeases(in());
  clock_.AwaitSleepers(2);  // the LeaseRenewer and the supervisor
  clock_.Advance(absl::Seconds(10));
  store_.AwaitDeleted(in(), 1);
  Finish();
  EXPECT_EQ(runs, 2);
  EXPECT_THAT(store_.put(output_), IsEmpty());
  EXPECT_EQ(listener_->counters().leases_lost, 1);
  EXPECT_EQ(listener_->counters().stale_settles, 1);
}

// No other consumer received m1 meanwhile, so the store takes its late delete, and tells no loss.
TEST_F(ListenerSettlementTest, CountsTheLeasesThatRanOutWhileTheProcessSlept) {
  options_.visibility = kShortLease;
  options_.max_dequeue_tasks = 1;
  std::atomic<bool> asleep = true;
  store_.SetMessageHooks(
      [&](Verb verb, const std::string&) {
        return verb == Verb::kUpdate && asleep ? absl::UnavailableError("asleep")
                                               : absl::OkStatus();
      },
      nullptr);
  Gate gate;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    if (delivery.message->body == "m1") gate.Pass();
    return Ok();
  };
  PutMany(3);  // the first is claimed alone, the others together
  Start();
  gate.AwaitArrivals(1);
  // Until the first holds no lease any more.
  while (listener_->QueryState().unsettled_messages > 2) base::LetOthersRun();
  clock_.AwaitSleepers(2);  // the LeaseRenewer and the supervisor
  clock_.Advance(absl::Seconds(45));
  store_.AwaitCalls(Verb::kUpdate, 1);
  asleep = false;
  gate.Open();
  PassTimeBetweenLeasesUntil([&] { return store_.deleted(in()).size() == 3; });
  EXPECT_EQ(listener_->counters().leases_lost, 2);
  Finish();
}

// Req. 17: the listener ignores the receipt mismatch, and counts it.
TEST_F(ListenerSettlementTest, GoesOnAfterADeleteThatCameTooLate) {
  std::atomic<bool> late = true;
  handler_ = [&](Delivery&, DeliveryContext&) {
    if (late.exchange(false)) store_.BreakLeases(in());
    return Ok();
  };
  Put("a");
  Start();
  store_.AwaitDeleted(in(), 1);
  Finish();
  EXPECT_THAT(notes(), ElementsAre("a#1", "a#2"));
  EXPECT_EQ(listener_->counters().stale_settles, 1);
  EXPECT_EQ(listener_->counters().leases_lost, 1);
  EXPECT_EQ(listener_->counters().messages_done, 1);
}

TEST_F(ListenerSettlementTest, LeasesForLongerAfterALeaseWasLost) {
  options_.visibility = kShortLease;
  std::atomic<bool> late = true;
  std::vector<absl::Duration> leased;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    leased.push_back(delivery.message->next_visible_time - clock_.Now());
    if (late.exchange(false)) store_.BreakLeases(in());
    return Ok();
  };
  options_.max_dequeue_tasks = 1;
  Put("a");
  Start();
  store_.AwaitDeleted(in(), 1);
  AwaitSettled();
  Put("b");
  Fire();
  store_.AwaitDeleted(in(), 2);
  Finish();
  EXPECT_EQ(leased.front(), absl::Seconds(30));
  EXPECT_EQ(leased.back(), absl::Seconds(60));
}

TEST_F(ListenerSettlementTest, RunsNothingWhoseLeaseIsLostBeforeItBegins) {
  options_.max_dequeue_tasks = 1;
  std::atomic<bool> once = true;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    if (delivery.message->body == "m1" && once.exchange(false)) {
      store_.AwaitDeleted(in(), 1);  // m0
      store_.BreakLeases(in());
    }
    return Ok();
  };
  PutMany(3);  // the first is claimed alone, the others together
  ReceiveBeginAndDie();
  Start();
  store_.AwaitDeleted(in(), 3);
  Finish();
  EXPECT_THAT(notes(), ElementsAre("m0#2", "m1#2", "refused m2", "m1#3", "m2#2"));
}

// Req. 18: C1 takes message 1 and crashes, C2 takes and deletes message 2, message 1 reappears.
TEST_F(ListenerSettlementTest, FinishesWhatACrashedConsumerLeft) {
  Put("1");
  ASSERT_EQ(store_.Receive(in(), {1, absl::Seconds(30)})->size(), 1);
  Put("2");
  Start();
  store_.AwaitDeleted(in(), 1);
  EXPECT_THAT(store_.deleted(in()), ElementsAre("2"));
  PassTimeBetweenLeasesUntil([&] { return store_.deleted(in()).size() == 2; }, absl::Seconds(1));
  EXPECT_THAT(store_.deleted(in()), ElementsAre("2", "1"));
  Finish();
}

}  // namespace
}  // namespace muster::listener
