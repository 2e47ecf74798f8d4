// SPDX-License-Identifier: Apache-2.0

// The store fails for single messages, or its answer is lost.

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/retry.h"
#include "muster/queue/store_decorators.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/listener_fixture.h"
#include "tests/fakes/os/no_more_threads.h"

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

// `muster run` under a limit of threads had no worker, and waited for its batch for ever.
TEST_F(ListenerFaultTest, TellsWhenWorkWaitsAndNoTaskCanStart) {
  events_.on_no_task = [this](const absl::Status& why) {
    Note(absl::StrCat("no task ", absl::StatusCodeToString(why.code())));
  };
  StartAndSettleDown();
  std::optional<os::NoMoreThreads> limit(std::in_place);
  Put("a");
  Fire();
  AwaitNotes(1);
  EXPECT_THAT(notes(), ElementsAre("no task RESOURCE_EXHAUSTED"));
  limit.reset();
  Put("b");
  Fire();
  store_.AwaitDeleted(in(), 2);
  Finish();
}

TEST_F(ListenerFaultTest, ATaskThatCannotStartBesideOthersIsAnErrorLikeOthers) {
  events_.on_no_task = [this](const absl::Status&) { Note("no task"); };
  Gate gate;
  handler_ = [&](Delivery&, DeliveryContext&) {
    gate.Pass();
    return Ok();
  };
  Put("a");
  Start();
  gate.AwaitArrivals(1);
  {
    const os::NoMoreThreads limit;
    Put("b");
    Fire();
    AwaitNotes(2);
  }
  EXPECT_THAT(notes(), ElementsAre("a#1", "error RESOURCE_EXHAUSTED"));
  gate.Open();
  store_.AwaitDeleted(in(), 2);
  Finish();
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
  clock_.AwaitSleepers(2);  // the LeaseRenewer and the supervisor
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

// The store accepts only so many calls a second: publishers and consumers back off, and no message
// is lost.

namespace {

class ListenerThrottleTest : public ListenerTest {
 protected:
  static constexpr double kTarget = 20;

  queue::ThrottledStore throttled_{&store_, kTarget, &clock_};
};

TEST_F(ListenerThrottleTest, RefusesWhatIsBeyondTheTargetAndSaysWhenToComeBack) {
  for (int i = 0; i < kTarget; ++i) ASSERT_TRUE(throttled_.Stats(partitions_[0]).ok());
  const absl::Status refused = throttled_.Stats(partitions_[0]).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  ASSERT_TRUE(base::RetryAfter(refused).has_value());
  EXPECT_EQ(*base::RetryAfter(refused), absl::Milliseconds(50));
  EXPECT_TRUE(throttled_.Stats({"acme", "another"}).ok()) << "each queue has a target of its own";
  clock_.Advance(absl::Milliseconds(50));
  EXPECT_TRUE(throttled_.Stats(partitions_[0]).ok());
  EXPECT_FALSE(throttled_.Stats(partitions_[0]).ok());
  EXPECT_FALSE(absl::IsResourceExhausted(throttled_.CreateQueue(partitions_[0], {})))
      << "administrators get through";
}

TEST_F(ListenerThrottleTest, LosesNothingOfThreeTimesTheTarget) {
  constexpr int kMessages = 200;
  constexpr int kPublishers = 3;
  listened_ = &throttled_;
  events_.on_error = [](const absl::Status&) {};
  Start();
  std::atomic<int> refused{0}, put{0};
  std::vector<std::thread> publishers;
  for (int publisher = 0; publisher < kPublishers; ++publisher) {
    publishers.emplace_back([&, publisher] {
      base::RetryPolicy retry(base::RetryOptions(), &clock_);
      for (int i = publisher; i < kMessages; i += kPublishers) {
        const auto result = retry.Run([&](const base::RetryAttempt&) {
          std::vector<queue::NewMessage> messages(1);
          messages[0].body = absl::StrCat("m", i);
          auto answer = throttled_.Put(partitions_[0], messages);
          if (base::RetryAfter(answer.status()).has_value()) ++refused;
          return answer;
        });
        ASSERT_TRUE(result.ok()) << result.status();
        ++put;
      }
    });
  }
  // Time stands still until the publishers have exceeded the target, however slow the machine is.
  while (refused == 0 && put < kMessages) base::LetOthersRun();
  PassTimeUntil([&] { return listener_->counters().messages_done == kMessages; });
  for (std::thread& publisher : publishers) publisher.join();
  FinishAsTimePasses();
  EXPECT_EQ(put, kMessages);
  EXPECT_GT(refused, 0) << "they never went beyond the target";
  EXPECT_EQ(store_.Stats(partitions_[0])->stored(), 0);
  EXPECT_EQ(listener_->counters().dead_letters, 0);
}

}  // namespace

}  // namespace muster::listener
