// What counts as an attempt, and how attempts are charged (req. 32, 68; D5).
#include <atomic>
#include <thread>
#include <vector>

#include "tests/fakes/listener/listener_settlement_fixture.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Settlement::Kind;

TEST_F(ListenerSettlementTest, DoesNotChargeADeferredAttempt) {
  std::atomic<int> deferrals = 6;
  options_.max_attempts = 2;
  handler_ = [&](Delivery&, DeliveryContext&) {
    return deferrals-- > 0 ? Outcome(Kind::kDefer, absl::Seconds(1)) : Ok();
  };
  Put("a");
  Start();
  PassTimeBetweenLeasesUntil([&] { return !store_.deleted(in()).empty(); });
  EXPECT_THAT(notes(), ::testing::Each("a#1"));
  EXPECT_EQ(listener_->counters().messages_deferred, 6);
  Finish();
}

// D5, and req. 68: one item that kills its process must not loop for ever.
TEST_F(ListenerSettlementTest, GivesUpWithoutARunWhatItsHoldersDiedOf) {
  options_.max_attempts = 2;
  on_given_up_ = [](const queue::Message&, const queue::Cause& cause) {
    std::vector<queue::NewMessage> outputs(1);
    outputs[0].body = cause.reason;
    return outputs;
  };
  Put("killer");
  ReceiveBeginAndDie();
  ReceiveBeginAndDie();
  Start();
  store_.AwaitPoison(in(), 1);
  EXPECT_THAT(notes(), IsEmpty());
  EXPECT_THAT(Poison()[0].cause.reason, HasSubstr("process died"));
  EXPECT_EQ(store_.put(output_).size(), 1);
}

TEST_F(ListenerSettlementTest, TellsTheSubscriberOfASuspect) {
  handler_ = [](Delivery& delivery, DeliveryContext&) {
    EXPECT_TRUE(delivery.message->interrupted);
    EXPECT_EQ(delivery.attempt, 2);
    return Ok();
  };
  Put("a");
  ReceiveBeginAndDie();
  Start();
  store_.AwaitDeleted(in(), 1);
}

TEST_F(ListenerSettlementTest, DoesNotGiveUpWhatWasOnlyFetchedOften) {
  options_.max_attempts = 2;
  Put("a");
  for (int fetch = 0; fetch < 100; ++fetch) {
    ASSERT_EQ(store_.Receive(in(), {1, absl::Seconds(30)})->size(), 1);
    store_.BreakLeases(in());
  }
  Start();
  store_.AwaitDeleted(in(), 1);
  EXPECT_THAT(notes(), ElementsAre("a#1"));
}

TEST_F(ListenerSettlementTest, GivesBackUnchargedWhenTheStoreCannotSayWhetherAnAttemptBegan) {
  std::atomic<bool> unsure = true;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    return verb == Verb::kBeginAttempt && unsure.exchange(false) ? absl::UnavailableError("what?")
                                                                 : absl::OkStatus();
  });
  Put("a");
  Start();
  store_.AwaitCalls(Verb::kBeginAttempt, 1);
  unsure = false;
  PassTimeBetweenLeasesUntil([&] { return !store_.deleted(in()).empty(); });
  EXPECT_THAT(notes(), ElementsAre("error UNAVAILABLE", "refused a", "a#1"));
  Finish();
}

class ListenerChargeTest : public ListenerSettlementTest {
 protected:
  // The first of three messages is claimed alone, the others together. Returns while the second is
  // worked on.
  void StartThree() {
    options_.max_dequeue_tasks = 1;
    store_.BeginTogether();
    handler_ = [this](Delivery& delivery, DeliveryContext&) {
      if (delivery.message->body == "m1") gate_.Pass();
      return Ok();
    };
    PutMany(3);
    Start();
    gate_.AwaitArrivals(1);
  }

  Gate gate_;
};

TEST_F(ListenerChargeTest, ChargesFirstAttemptsOfOneClaimTogether) {
  StartThree();
  gate_.Open();
  store_.AwaitDeleted(in(), 3);
  EXPECT_EQ(store_.calls(Verb::kBeginAttempt), 2);
  EXPECT_EQ(listener_->counters().attempts, 3);
  Finish();
}

TEST_F(ListenerChargeTest, ChargesAloneWhatHasFewAttempts) {
  options_.max_attempts = 2;
  StartThree();
  gate_.Open();
  store_.AwaitDeleted(in(), 3);
  EXPECT_EQ(store_.calls(Verb::kBeginAttempt), 3);
  Finish();
}

TEST_F(ListenerChargeTest, TriesNothingTwiceOfWhatTheStoreCannotCharge) {
  std::atomic<int> begins = 0;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    if (verb != Verb::kBeginAttempt || ++begins != 2) return absl::OkStatus();
    return absl::InternalError("broken");
  });
  options_.max_dequeue_tasks = 1;
  store_.BeginTogether();
  handler_ = [](Delivery&, DeliveryContext&) { return Ok(); };
  PutMany(3);
  Start();
  AwaitNotes(5);
  EXPECT_THAT(notes(),
              ElementsAre("m0#1", "error INTERNAL", "error INTERNAL", "refused m1", "refused m2"));
  AwaitSettled();
  EXPECT_EQ(begins, 2);
  Finish();
}

TEST_F(ListenerChargeTest, TakesBackTheChargeOfWhatDidNotBegin) {
  StartThree();
  std::thread stopper([&] { Finish(); });
  store_.AwaitCalls(Verb::kUpdate, 1);  // while m1's handler still works
  gate_.Open();
  stopper.join();
  const auto left = *store_.Receive(in(), {32, absl::Seconds(30)});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].body, "m2");
  EXPECT_EQ(left[0].attempts, 0);
  EXPECT_FALSE(left[0].interrupted);
}

TEST_F(ListenerChargeTest, ChargesEachAloneWhereTheStoreChargesExactly) {
  options_.max_dequeue_tasks = 1;
  handler_ = [](Delivery&, DeliveryContext&) { return Ok(); };
  PutMany(3);
  Start();
  store_.AwaitDeleted(in(), 3);
  EXPECT_EQ(store_.calls(Verb::kBeginAttempt), 3);
  Finish();
}

TEST_F(ListenerChargeTest, ChargesSuspectsAlone) {
  store_.BeginTogether();
  PutMany(3);
  ReceiveBeginAndDie();
  const int before = store_.calls(Verb::kBeginAttempt);
  options_.max_dequeue_tasks = 1;
  handler_ = [](Delivery&, DeliveryContext&) { return Ok(); };
  Start();
  store_.AwaitDeleted(in(), 3);
  EXPECT_EQ(store_.calls(Verb::kBeginAttempt) - before, 3);
  Finish();
}

}  // namespace
}  // namespace muster::listener
