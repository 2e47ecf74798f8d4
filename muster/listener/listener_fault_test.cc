// When the store fails for single messages, or its answer is lost (req. 22; D5).
#include <atomic>
#include <stdexcept>
#include <string>

#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;
using Kind = Settlement::Kind;

class ListenerFaultTest : public ListenerTest {
 protected:
  const queue::QueueId& in() { return partitions_[0]; }

  // The first time, `verb` fails for the message `body`.
  testing::MemoryStore::MessageHook OnceFor(Verb failing, std::string failing_body) {
    return [this, failing, failing_body](Verb verb, const std::string& body) {
      return verb == failing && body == failing_body && !failed_.exchange(true)
                 ? absl::DataLossError("by design")
                 : absl::OkStatus();
    };
  }

  std::atomic<bool> failed_ = false;
};

TEST_F(ListenerFaultTest, TellsOfASingleMessageThatTheStoreCouldNotDelete) {
  store_.SetMessageHooks(OnceFor(Verb::kDelete, "a"), nullptr);
  Put("a");
  Start();
  AwaitNotes(2);
  EXPECT_THAT(notes(), ElementsAre("a#1", "error DATA_LOSS"));
  Finish();
  EXPECT_EQ(listener_->counters().abandoned, 1);
}

TEST_F(ListenerFaultTest, TellsOfASingleMessageThatTheStoreCouldNotSetAside) {
  store_.SetMessageHooks(OnceFor(Verb::kDeadLetter, "a"), nullptr);
  handler_ = [](Delivery&, DeliveryContext&) { return Outcome(Kind::kDead); };
  Put("a");
  Start();
  AwaitNotes(2);
  EXPECT_THAT(notes(), ElementsAre("a#1", "error DATA_LOSS"));
  Finish();
}

TEST_F(ListenerFaultTest, TellsOnceOfTheLeasesThatTheStoreCouldNotRenew) {
  options_.visibility = kShortLease;
  Gate gate;
  options_.work_rule = [](int64_t) { return 3; };
  store_.SetMessageHooks(
      [](Verb verb, const std::string&) {
        return verb == Verb::kUpdate ? absl::DataLossError("by design") : absl::OkStatus();
      },
      nullptr);
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  PutMany(3);
  Start();
  gate.AwaitArrivals(3);
  clock_.AwaitSleepers(2);  // the keeper and the supervisor
  clock_.Advance(absl::Seconds(10));
  store_.AwaitCalls(Verb::kUpdate, 1);
  clock_.AwaitSleepers(2);
  EXPECT_EQ(notes().size(), 4);
  EXPECT_EQ(notes().back(), "error DATA_LOSS");
  gate.Open();
  store_.AwaitDeleted(in(), 3);
  Finish();
}

TEST_F(ListenerFaultTest, TellsOfASingleMessageWhoseAttemptTheStoreCouldNotCharge) {
  store_.SetMessageHooks(OnceFor(Verb::kBeginAttempt, "a"), nullptr);
  Put("a");
  Start();
  PassTimeBetweenLeasesUntil([&] { return !store_.deleted(in()).empty(); });
  EXPECT_THAT(notes(), ElementsAre("error DATA_LOSS", "refused a", "a#1"));
  Finish();
}

TEST_F(ListenerFaultTest, RefundsAnAttemptThatWasChargedButWhoseAnswerWasLost) {
  store_.SetMessageHooks(nullptr, OnceFor(Verb::kBeginAttempt, "a"));
  handler_ = [](Delivery& delivery, DeliveryContext&) {
    EXPECT_FALSE(delivery.message->interrupted);
    return Ok();
  };
  Put("a");
  Start();
  PassTimeBetweenLeasesUntil([&] { return !store_.deleted(in()).empty(); });
  EXPECT_THAT(notes(), ElementsAre("error DATA_LOSS", "refused a", "a#1"));
  Finish();
}

TEST_F(ListenerFaultTest, ChargesOnceHoweverOftenItIsToldOfTheStart) {
  handler_ = [&](Delivery& delivery, DeliveryContext& context) {
    EXPECT_TRUE(context.Begin(delivery).ok());
    EXPECT_EQ(delivery.attempt, 1);
    return Ok();
  };
  Put("a");
  Start();
  store_.AwaitDeleted(partitions_[0], 1);
  EXPECT_EQ(store_.calls(Verb::kBeginAttempt), 1);
  Finish();
}

}  // namespace
}  // namespace muster::listener
