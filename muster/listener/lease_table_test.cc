// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/lease_table.h"

#include <atomic>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::listener {
namespace {

class LeaseTableTest : public ::testing::Test {
 protected:
  LeasePtr Lend(const std::string& receipt) {
    EXPECT_EQ(leases_.Reserve(1), 1);
    std::vector<queue::Message> messages(1);
    messages[0].receipt = receipt;
    return leases_.Add(0, std::move(messages), clock_.Monotonic(), absl::Seconds(30))[0];
  }

  int64_t lost() const { return counters_.Snapshot().leases_lost; }

  base::FakeClock clock_;
  CounterSet counters_;
  LeaseTable leases_{&clock_, 4, &counters_};
};

TEST_F(LeaseTableTest, NeverLendsMoreThanItsBound) {
  EXPECT_EQ(leases_.Reserve(3), 3);
  EXPECT_EQ(leases_.Reserve(3), 1);
  leases_.Unreserve(2);
  EXPECT_EQ(leases_.Reserve(32), 2);
}

TEST_F(LeaseTableTest, KeepsAMessageUnderItsReceiptForAnotherDelivery) {
  const LeasePtr lease = Lend("old");
  leases_.Renewed(*lease, "new", clock_.Monotonic());
  ASSERT_TRUE(leases_.Begin(*lease).ok());
  ASSERT_TRUE(leases_.StartSettling(*lease));
  const LeasePtr again = leases_.Keep(*lease, 3, false);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->message.attempts, 3);
  EXPECT_FALSE(leases_.charged(*again));
  EXPECT_EQ(*leases_.PinForCharge(*again), "new");
  leases_.Unpin(*again, false);
  EXPECT_EQ(leases_.leased(), 1);
  leases_.Remove(*again);
  EXPECT_EQ(leases_.unsettled(), 0);
}

TEST_F(LeaseTableTest, TheNextDeliveryTakesTheAttemptThatThisOneWasRefunded) {
  const LeasePtr lease = Lend("r");
  ASSERT_TRUE(leases_.StartSettling(*lease));
  const LeasePtr again = leases_.Keep(*lease, 3, true);
  EXPECT_EQ(again->message.attempts, 2);
  EXPECT_TRUE(leases_.charged(*again));
  leases_.Remove(*again);
}

TEST_F(LeaseTableTest, KeepsNothingWhoseLeaseIsLost) {
  const LeasePtr lease = Lend("r");
  ASSERT_TRUE(leases_.StartSettling(*lease));
  leases_.Lost(*lease);
  EXPECT_EQ(leases_.Keep(*lease, 1, false), nullptr);
  leases_.Remove(*lease);
}

TEST_F(LeaseTableTest, WaitsForRoomUntilALeaseEnds) {
  const LeasePtr lease = Lend("r");
  ASSERT_EQ(leases_.Reserve(3), 3);
  std::atomic<int> got = 0;
  std::thread waiter([&] { got = leases_.Reserve(1); });
  leases_.Remove(*lease);
  waiter.join();
  EXPECT_EQ(got, 1);
}

TEST_F(LeaseTableTest, EndsWaitingForRoomWhenAborted) {
  ASSERT_EQ(leases_.Reserve(4), 4);
  std::thread waiter([&] { EXPECT_EQ(leases_.Reserve(1), 0); });
  leases_.AbortWaits();
  waiter.join();
}

// A process that slept finds out by its clock. The store may take its late calls all the same.
TEST_F(LeaseTableTest, CountsEachLeaseThatRanOutOnceHoweverItIsNoticed) {
  const LeasePtr to_begin = Lend("a"), begun = Lend("b"), renewed = Lend("c");
  ASSERT_TRUE(leases_.Begin(*begun).ok());
  clock_.Advance(absl::Seconds(45));
  EXPECT_EQ(lost(), 0) << "it sleeps";
  EXPECT_FALSE(leases_.PinForCharge(*to_begin).ok());
  EXPECT_EQ(lost(), 1);
  EXPECT_FALSE(leases_.Begin(*to_begin).ok());
  EXPECT_EQ(lost(), 1) << "once";
  ASSERT_TRUE(leases_.StartSettling(*begun));
  EXPECT_TRUE(leases_.PinForSettle(*begun).ok()) << "possibly nobody took it";
  EXPECT_EQ(lost(), 2);
  for (const LeaseTable::Renewal& due : leases_.AwaitDue(10)) {
    leases_.Renewed(*due.lease, due.receipt, clock_.Monotonic());
  }
  EXPECT_EQ(lost(), 3);
  EXPECT_TRUE(leases_.Begin(*renewed).ok()) << "renewed after all";
  leases_.Lost(*renewed);
  leases_.CountLost(*begun);
  EXPECT_EQ(lost(), 3) << "once";
}

TEST_F(LeaseTableTest, CountsALeaseThatTheStoreCallsLost) {
  leases_.Lost(*Lend("a"));
  const LeasePtr settled = Lend("b");
  leases_.CountLost(*settled);
  EXPECT_EQ(lost(), 2);
}

TEST_F(LeaseTableTest, HandsOutWhatIsDueAThirdIntoTheLease) {
  const LeasePtr lease = Lend("r1");
  clock_.Advance(absl::Seconds(10));
  const auto due = leases_.AwaitDue(10);
  ASSERT_EQ(due.size(), 1);
  EXPECT_EQ(due[0].receipt, "r1");
  leases_.Renewed(*lease, "r2", clock_.Monotonic());
  EXPECT_EQ(*leases_.PinForCharge(*lease), "r2");
}

TEST_F(LeaseTableTest, SettlesWithTheReceiptThatTheKeeperIsStillWaitingFor) {
  const LeasePtr lease = Lend("r1");
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(leases_.AwaitDue(10).size(), 1);
  ASSERT_TRUE(leases_.StartSettling(*lease));
  std::thread settler([&] { EXPECT_EQ(*leases_.PinForSettle(*lease), "r2"); });
  leases_.Renewed(*lease, "r2", clock_.Monotonic());
  settler.join();
}

TEST_F(LeaseTableTest, LeavesALeaseThatIsInUseToTheNextRenewal) {
  const LeasePtr lease = Lend("r1");
  ASSERT_TRUE(leases_.PinForCharge(*lease).ok());
  clock_.Advance(absl::Seconds(10));
  std::thread keeper([&] { EXPECT_EQ(leases_.AwaitDue(10).size(), 1); });
  clock_.AwaitSleepers(1);
  leases_.Unpin(*lease, true);
  clock_.Advance(absl::Seconds(2));
  keeper.join();
}

TEST_F(LeaseTableTest, FiresTheTokenOfALostLeaseAndRefusesToBegin) {
  const LeasePtr lease = Lend("r");
  const std::stop_token token = leases_.TokenOf(*lease);
  EXPECT_FALSE(token.stop_requested());
  leases_.Lost(*lease);
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(absl::IsFailedPrecondition(leases_.PinForCharge(*lease).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(leases_.Begin(*lease)));
  ASSERT_TRUE(leases_.StartSettling(*lease));
  EXPECT_TRUE(absl::IsFailedPrecondition(leases_.PinForSettle(*lease).status()));
}

TEST_F(LeaseTableTest, BeginsNothingWhoseLeaseRanOutByTheClockButStillTriesToSettleIt) {
  const LeasePtr lease = Lend("r");
  const std::stop_token token = leases_.TokenOf(*lease);
  clock_.Advance(absl::Seconds(30));
  leases_.NotRenewed(*lease);
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(absl::IsFailedPrecondition(leases_.PinForCharge(*lease).status()));
  ASSERT_TRUE(leases_.StartSettling(*lease));
  EXPECT_TRUE(leases_.PinForSettle(*lease).ok());
}

TEST_F(LeaseTableTest, BeginsNothingWhoseLeaseRanOutWhileItWaitedForTheKeeper) {
  const LeasePtr lease = Lend("r");
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(leases_.AwaitDue(10).size(), 1);
  std::thread task(
      [&] { EXPECT_TRUE(absl::IsFailedPrecondition(leases_.PinForCharge(*lease).status())); });
  for (int i = 0; i < 1000; ++i) base::LetOthersRun();  // mostly, it waits by now
  clock_.Advance(absl::Seconds(20));
  leases_.NotRenewed(*lease);
  task.join();
}

TEST_F(LeaseTableTest, ReleasesOnlyWhatHasNotBegun) {
  const LeasePtr begun = Lend("a");
  const LeasePtr waiting = Lend("b");
  for (const LeasePtr& charged : {begun, waiting}) {
    ASSERT_TRUE(leases_.PinForCharge(*charged).ok());
    leases_.Unpin(*charged, true);
  }
  ASSERT_TRUE(leases_.Begin(*begun).ok());
  const std::vector<LeasePtr> released = leases_.ReleaseUnbegun();
  ASSERT_EQ(released.size(), 1);
  EXPECT_EQ(released[0], waiting);
  EXPECT_TRUE(absl::IsCancelled(leases_.PinForCharge(*waiting).status()));
  EXPECT_TRUE(absl::IsCancelled(leases_.Begin(*waiting)));
  EXPECT_FALSE(leases_.StartSettling(*waiting));
}

TEST_F(LeaseTableTest, FiresTheTokensOfAllLeasesAndOfLaterOnes) {
  const LeasePtr early = Lend("a");
  const std::stop_token token = leases_.TokenOf(*early);
  leases_.StopAll();
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(leases_.TokenOf(*Lend("b")).stop_requested());
}

using LeaseTableDeathTest = LeaseTableTest;

TEST_F(LeaseTableDeathTest, ALeaseNeedsAReservedPlace) {
  Lend("r");
  EXPECT_DEATH(
      leases_.Add(0, std::vector<queue::Message>(1), clock_.Monotonic(), absl::Seconds(30)),
      "leased 1, more 1, places 1");
}

TEST_F(LeaseTableDeathTest, APlaceIsFreedOnce) {
  ASSERT_EQ(leases_.Reserve(2), 2);
  leases_.Unreserve(2);
  EXPECT_DEATH(leases_.Unreserve(1), "places 1, unsettled 0, leased 0");
}

TEST_F(LeaseTableDeathTest, AMessageIsSettledOnce) {
  const LeasePtr lease = Lend("r");
  EXPECT_DEATH(leases_.PinForSettle(*lease).IgnoreError(), "settling 0, settled 0");
  ASSERT_TRUE(leases_.StartSettling(*lease));
  ASSERT_TRUE(leases_.PinForSettle(*lease).ok());
  leases_.Remove(*lease);
  EXPECT_DEATH(leases_.PinForSettle(*lease).IgnoreError(), "settling 1, settled 1");
}

}  // namespace
}  // namespace muster::listener
