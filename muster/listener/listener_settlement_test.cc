// SPDX-License-Identifier: Apache-2.0

// The settlement of messages: outcomes, poison, outputs before deletes.

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Settlement::Kind;

TEST_F(ListenerSettlementTest, PutsTheOutputDurablyBeforeItDeletesTheInput) {
  store_.SetHook([&](Verb verb, const queue::QueueId& queue) {
    if (verb == Verb::kPut && queue == output_) Note("put");
    if (verb == Verb::kDelete) Note("delete");
    return absl::OkStatus();
  });
  handler_ = [](Delivery&, DeliveryContext&) { return Ok({"x", "y"}); };
  Put("a");
  Start();
  store_.AwaitDeleted(in(), 1);
  EXPECT_THAT(notes(), ElementsAre("a#1", "put", "delete"));
  EXPECT_THAT(store_.put(output_), ElementsAre("x", "y"));
  Finish();
}

TEST_F(ListenerSettlementTest, PutsWhatThePackerMakesOfTheOutputs) {
  options_.pack_outputs = [](std::vector<queue::NewMessage> outputs) {
    std::string all;
    for (const queue::NewMessage& output : outputs) all += output.body;
    outputs.resize(1);
    outputs.front().body = all;
    return outputs;
  };
  handler_ = [](Delivery&, DeliveryContext&) { return Ok({"x", "y"}); };
  Put("a");
  Start();
  store_.AwaitDeleted(in(), 1);
  EXPECT_THAT(store_.put(output_), ElementsAre("xy"));
  Finish();
}

TEST_F(ListenerSettlementTest, CommitsInOneGroupWhatGatheredWhileItWasBusy) {
  Gate gate;
  store_.SetHook([&](Verb verb, const queue::QueueId&) {
    if (verb == Verb::kDelete) gate.Pass();
    return absl::OkStatus();
  });
  handler_ = [](Delivery&, DeliveryContext&) { return Ok({"x"}); };
  options_.max_dequeue_tasks = 4;  // each may still hold its last settlement when the gate opens
  PutMany(100);
  Start();
  gate.AwaitArrivals(1);
  AwaitNotes(100);
  gate.Open();
  store_.AwaitDeleted(in(), 100);
  EXPECT_LT(store_.calls(Verb::kDelete), 10);
  Finish();
}

// Two messages in the hands of two tasks; the first is settled while the second still waits.
class ListenerLingerTest : public ListenerSettlementTest {
 protected:
  void StartTwo() {
    handler_ = [this](Delivery& delivery, DeliveryContext&) {
      if (delivery.message->body == "m1") {
        gate_.Pass();
      } else {
        gate_.AwaitArrivals(1);
      }
      return Ok();
    };
    lingers_ = true;
    options_.max_dequeue_tasks = 2;
    options_.work_rule = [](int64_t) { return 2; };
    PutMany(2);
    Start();
    AwaitNotes(2);
  }

  Gate gate_;
};

TEST_F(ListenerLingerTest, WaitsAMomentForWhatIsInHandToCommitItTogether) {
  StartTwo();
  gate_.Open();
  store_.AwaitDeleted(in(), 2);
  Finish();
  EXPECT_EQ(store_.calls(Verb::kDelete), 1);
}

TEST_F(ListenerLingerTest, WaitsForOthersNoLongerThanItMay) {
  StartTwo();
  PassTimeUntil([&] { return store_.calls(Verb::kDelete) == 1; }, options_.settle_linger);
  gate_.Open();
  store_.AwaitDeleted(in(), 2);
  Finish();
  EXPECT_EQ(store_.calls(Verb::kDelete), 2);
}

TEST_F(ListenerSettlementTest, WaitsForNobodyWhenNothingElseIsInHand) {
  lingers_ = true;
  Put("a");
  Start();
  store_.AwaitDeleted(in(), 1);  // though time stands still
  Finish();
  EXPECT_EQ(store_.calls(Verb::kDelete), 1);
}

TEST_F(ListenerSettlementTest, NeverDeletesAnInputWhoseOutputCouldNotBePutNorChargesIt) {
  std::atomic<bool> full = true;
  store_.SetHook([&](Verb verb, const queue::QueueId& queue) {
    return verb == Verb::kPut && queue == output_ && full ? absl::UnavailableError("disk full")
                                                          : absl::OkStatus();
  });
  handler_ = [](Delivery&, DeliveryContext&) { return Ok({"x"}); };
  Put("a");
  Start();
  PassTimeUntil([&] { return listener_->counters().messages_deferred == 1; });
  EXPECT_THAT(store_.deleted(in()), IsEmpty());
  full = false;
  PassTimeBetweenLeasesUntil([&] { return !store_.deleted(in()).empty(); });
  EXPECT_THAT(notes(), ElementsAre("a#1", "error UNAVAILABLE", "a#1"));
  EXPECT_THAT(store_.put(output_), ElementsAre("x"));
  Finish();
}

TEST_F(ListenerSettlementTest, LeavesTheLeaseToExpireWhenTheStoreIsGoneAltogether) {
  std::atomic<bool> gone = false;
  store_.SetHook([&](Verb, const queue::QueueId&) {
    return gone ? absl::UnavailableError("gone") : absl::OkStatus();
  });
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    gone = delivery.attempt == 1;
    return Ok({"x"});
  };
  Put("a");
  Start();
  PassTimeUntil([&] { return listener_->counters().abandoned == 1; });
  gone = false;
  PassTimeUntil([&] { return !store_.deleted(in()).empty(); });
  EXPECT_THAT(store_.put(output_), ElementsAre("x"));
  EXPECT_EQ(listener_->counters().interrupted, 1);
  Finish();
}

TEST_F(ListenerSettlementTest, RetriesUpToTheLastAttemptAndThenSetsAsideWithTheCause) {
  options_.max_attempts = 3;
  handler_ = [&](Delivery& delivery, DeliveryContext&) {
    EXPECT_EQ(delivery.last_attempt, delivery.attempt == 3);
    return Outcome(Kind::kRetry, absl::Seconds(1), "it rained");
  };
  on_given_up_ = [&](const queue::Message& message, const queue::Cause& cause) {
    Note("given up");
    std::vector<queue::NewMessage> outputs(1);
    outputs[0].body = message.body + " is dead: " + cause.reason;
    return outputs;
  };
  Put("a");
  Start();
  PassTimeBetweenLeasesUntil([&] { return !Poison().empty(); });
  EXPECT_THAT(notes(), ElementsAre("a#1", "a#2", "a#3", "given up"));
  EXPECT_EQ(Poison()[0].cause.reason, "attempt 3 of 3 failed: it rained");
  EXPECT_EQ(Poison()[0].cause.attempts, 3);
  EXPECT_EQ(Poison()[0].cause.holder, "local");
  EXPECT_THAT(store_.put(output_), ElementsAre("a is dead: attempt 3 of 3 failed: it rained"));
  Finish();
}

TEST_F(ListenerSettlementTest, PutsWhatOnGivenUpSaysBeforeItSetsAside) {
  store_.SetHook([&](Verb verb, const queue::QueueId& queue) {
    if (verb == Verb::kPut && queue == output_) Note("put");
    if (verb == Verb::kDeadLetter) Note("dead letter");
    return absl::OkStatus();
  });
  handler_ = [](Delivery&, DeliveryContext&) { return Outcome(Kind::kDead); };
  on_given_up_ = [](const queue::Message&, const queue::Cause&) {
    return std::vector<queue::NewMessage>(1);
  };
  Put("a");
  Start();
  store_.AwaitPoison(in(), 1);
  EXPECT_THAT(notes(), ElementsAre("a#1", "put", "dead letter"));
  Finish();
}

TEST_F(ListenerSettlementTest, AsksAgainWhenOnGivenUpFails) {
  std::atomic<bool> broken = true;
  handler_ = [](Delivery&, DeliveryContext&) { return Outcome(Kind::kDead); };
  on_given_up_ = [&](const queue::Message&, const queue::Cause&) {
    if (broken.exchange(false)) throw std::runtime_error("no");
    return std::vector<queue::NewMessage>();
  };
  Put("a");
  Start();
  PassTimeBetweenLeasesUntil([&] { return !Poison().empty(); });
  EXPECT_THAT(notes(), ElementsAre("a#1", "error INTERNAL", "a#2"));
  Finish();
}

TEST_F(ListenerSettlementTest, TreatsAThrowingHandlerAsAFailedAttempt) {
  options_.max_attempts = 1;
  handler_ = [](Delivery&, DeliveryContext&) -> Settlement { throw std::runtime_error("oops"); };
  Put("a");
  Start();
  store_.AwaitPoison(in(), 1);
  EXPECT_THAT(Poison()[0].cause.reason, HasSubstr("the handler threw: oops"));
}

TEST_F(ListenerSettlementTest, IgnoresASecondSettlement) {
  handler_ = [](Delivery& delivery, DeliveryContext& context) {
    context.Settle(delivery, Ok({"first"}));
    return Ok({"second"});
  };
  Put("a");
  Start();
  store_.AwaitDeleted(in(), 1);
  Finish();
  EXPECT_THAT(store_.put(output_), ElementsAre("first"));
}

}  // namespace

// What counts as an attempt, and how attempts are charged.

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

// An item that kills its process must not loop for ever.
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
  // The first of three messages is claimed alone, the others together. Returns while the handler
  // works on the second.
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
