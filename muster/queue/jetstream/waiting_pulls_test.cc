// SPDX-License-Identifier: Apache-2.0

// Messages that a process waits for, on each server that NatsServer::Programs names.
#include "muster/queue/jetstream/waiting_pulls.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"

namespace muster::queue::jetstream {
namespace {

using ::testing::HasSubstr;

// What waits have brought. Thread-safe.
class Arrivals {
 public:
  // `takes`: what the waits answer.
  queue::QueueStore::TakeMessage Taker(bool takes = true) {
    return [this, takes](absl::StatusOr<queue::Message> message) {
      base::MutexLock lock(&mu_);
      all_.push_back(std::move(message));
      changed_.NotifyAll();
      return takes;
    };
  }
  // The nth, from 1 on, once it is there.
  absl::StatusOr<queue::Message> Await(size_t n = 1) {
    base::MutexLock lock(&mu_);
    while (all_.size() < n) changed_.Wait(&mu_);
    return all_[n - 1];
  }
  size_t count() {
    base::MutexLock lock(&mu_);
    return all_.size();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<absl::StatusOr<queue::Message>> all_ ABSL_GUARDED_BY(mu_);
};

class WaitingPullsTest : public JetStreamQueueStoreTest {
 protected:
  auto Wait(Arrivals* arrivals, absl::Duration patience = absl::Minutes(1), bool takes = true) {
    auto wait = store().AwaitMessage(queue_, patience, arrivals->Taker(takes));
    EXPECT_TRUE(wait.ok()) << wait.status();
    return *std::move(wait);
  }
  // Pulls that wait at the server.
  int64_t AtServer() {
    nats::JetStream jetstream(client_->connection.get(), options_.timeout);
    return jetstream.GetConsumer(StreamOf(queue_), kConsumer)->waiting;
  }
  void Put(const std::string& body) {
    queue::NewMessage message;
    message.body = body;
    ASSERT_TRUE(Insist([&] { return store().Put(queue_, {message}); }).ok());
  }
  absl::Status Delete(const queue::Message& message) {
    return store().Delete(queue_, {message.receipt})->front();
  }
};

TEST_P(WaitingPullsTest, BringALeasedMessageThatIsPutLater) {
  Arrivals arrivals;
  const auto wait = Wait(&arrivals);
  Put("a");
  const auto message = arrivals.Await();
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->body, "a");
  EXPECT_EQ(message->dequeue_count, 1);
  EXPECT_TRUE(store().Receive(queue_, {32})->empty());
  EXPECT_EQ(*store().BeginAttempt(queue_, {message->receipt})->front(), 1);
  EXPECT_TRUE(Delete(*message).ok());
  EXPECT_EQ(store().Stats(queue_)->stored(), 0);
}

TEST_P(WaitingPullsTest, BringAMessageThatIsThereAtOnceAndNoSecondOne) {
  Put("a");
  Put("b");
  Arrivals arrivals;
  const auto wait = Wait(&arrivals);
  EXPECT_EQ(arrivals.Await()->body, "a");
  EXPECT_EQ(store().Receive(queue_, {32})->size(), 1u);
  EXPECT_EQ(arrivals.count(), 1u);
}

TEST_P(WaitingPullsTest, TellApartTheQueuesThatOneProcessWaitsFor) {
  const queue::QueueId other{"acme", "other"};
  ASSERT_TRUE(store().CreateQueue(other, {}).ok());
  Arrivals here, there;
  const auto one = Wait(&here);
  const auto two = store().AwaitMessage(other, absl::Minutes(1), there.Taker());
  queue::NewMessage message;
  message.body = "other's";
  ASSERT_TRUE(store().Put(other, {message}).ok());
  EXPECT_EQ(there.Await()->body, "other's");
  EXPECT_EQ(here.count(), 0u);
  Put("ours");
  EXPECT_EQ(here.Await()->body, "ours");
}

// 2.9 says so only sometimes.
TEST_P(WaitingPullsTest, SayThatTheTimeIsUpOrLeaveItToTheCaller) {
  Arrivals arrivals;
  const auto wait = Wait(&arrivals, absl::Milliseconds(50));
  absl::SleepFor(absl::Milliseconds(300));
  if (arrivals.count() > 0) {
    EXPECT_TRUE(absl::IsNotFound(arrivals.Await().status())) << arrivals.Await().status();
  }
  Put("a");
  EXPECT_EQ(store().Receive(queue_, {32})->size(), 1u) << "no pull took it";
}

TEST_P(WaitingPullsTest, GiveBackAtOnceWhatIsNotTaken) {
  Arrivals arrivals;
  const auto wait = Wait(&arrivals, absl::Minutes(1), /*takes=*/false);
  Put("a");
  ASSERT_TRUE(arrivals.Await().ok());
  Arrivals again;
  const auto next = Wait(&again);
  EXPECT_EQ(again.Await()->dequeue_count, 2);
}

TEST_P(WaitingPullsTest, GiveBackAtOnceWhatComesAfterTheirEnd) {
  Arrivals none, some;
  { const auto wait = Wait(&none); }
  Put("a");
  const auto wait = Wait(&some);
  const auto message = some.Await();
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->body, "a");
  EXPECT_EQ(none.count(), 0u);
  EXPECT_TRUE(Delete(*message).ok());
}

TEST_P(WaitingPullsTest, AreSentAgainWhenTheConnectionIsBack) {
  Arrivals arrivals;
  const auto wait = Wait(&arrivals, absl::Minutes(5));
  server_.Restart();
  while (!client_->prompt->connected()) absl::SleepFor(absl::Milliseconds(5));
  Put("a");
  // A server that was not ready yet has ended the wait; a listener would open it again.
  absl::StatusOr<queue::Message> message = arrivals.Await(1);
  std::unique_ptr<queue::QueueStore::Wait> more;
  for (size_t n = 2; absl::IsUnavailable(message.status()); ++n) {
    more = Wait(&arrivals);
    message = arrivals.Await(n);
  }
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->body, "a");
}

// What a server of a cluster says when it takes the lead of a consumer.
TEST_P(WaitingPullsTest, AreSentAgainToANewLeaderOfTheirConsumer) {
  const queue::QueueId other{"acme", "other"};
  ASSERT_TRUE(store().CreateQueue(other, {}).ok());
  Arrivals arrivals;
  const auto wait = Wait(&arrivals);
  while (AtServer() < 1) absl::SleepFor(absl::Milliseconds(1));
  for (const queue::QueueId& queue : {other, queue_}) {
    ASSERT_TRUE(
        client_->connection
            ->Publish({.subject = absl::StrCat("$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.",
                                               StreamOf(queue), ".", kConsumer),
                       .data = "{}"})
            .ok());
  }
  while (AtServer() < 2) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(AtServer(), 2) << "this server has not lost the first one, as an old leader has";
}

TEST_P(WaitingPullsTest, EndWithTheirQueue) {
  Arrivals arrivals;
  const auto wait = Wait(&arrivals);
  while (AtServer() == 0) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_TRUE(store().DeleteQueue(queue_).ok());
  const absl::Status ended = arrivals.Await().status();
  EXPECT_FALSE(ended.ok() || absl::IsNotFound(ended)) << ended;
}

TEST_P(WaitingPullsTest, LeaveNothingAtTheServerWhenTheirProcessIsGone) {
  Arrivals arrivals;
  {
    const Client other(server_.url(), options_);
    const auto wait = other.store->AwaitMessage(queue_, absl::Minutes(1), arrivals.Taker()).value();
    while (AtServer() == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  Put("a");
  EXPECT_EQ(store().Receive(queue_, {32})->size(), 1u) << "it was not delivered to the dead";
  EXPECT_EQ(store().Stats(queue_)->waits, 0);
}

// A process that ends in the middle of a burst.
TEST_P(WaitingPullsTest, LoseNoMessageToAProcessThatEnds) {
  for (int round = 0; round < 20; ++round) {
    Arrivals arrivals;
    auto other = std::make_unique<Client>(server_.url(), options_);
    auto wait = other->store->AwaitMessage(queue_, absl::Minutes(1), arrivals.Taker(false)).value();
    std::thread putter([&] { Put(absl::StrCat(round)); });
    wait.reset();
    other.reset();
    putter.join();
    Arrivals found;
    const auto next = Wait(&found);  // within the lease of the dead, which lasts longer than a test
    const auto message = found.Await();
    ASSERT_TRUE(message.ok()) << message.status();
    ASSERT_TRUE(Delete(*message).ok());
  }
}

// A process that was frozen for as long as its lease has lasted must not begin what others have by
// now.
TEST_P(WaitingPullsTest, OnlyAnnounceAMessageWhoseLeaseMayHaveRunOut) {
  base::FakeClock clock;
  clock.StepWallClock(absl::Now() - clock.Now());
  Options options = options_;
  options.clock = &clock;
  const Client slow(server_.url(), options);
  Arrivals arrivals;
  const auto wait = slow.store->AwaitMessage(queue_, absl::Minutes(1), arrivals.Taker()).value();
  while (AtServer() == 0) absl::SleepFor(absl::Milliseconds(1));
  clock.Advance(options_.settings.lease + absl::Seconds(10));
  Put("a");
  const absl::Status announced = arrivals.Await().status();
  EXPECT_TRUE(absl::IsAborted(announced)) << announced;
  EXPECT_THAT(announced.message(), HasSubstr("it is not known when"));
  Arrivals again;
  const auto next = Wait(&again);
  EXPECT_EQ(again.Await()->dequeue_count, 2) << "it was given back";
}

TEST_P(WaitingPullsTest, CountAtTheServerForAllProcesses) {
  const Client other(server_.url(), options_);
  Arrivals here, there;
  const auto one = Wait(&here);
  const auto two = other.store->AwaitMessage(queue_, absl::Minutes(1), there.Taker()).value();
  while (store().Stats(queue_)->waits < 2) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(other.store->Stats(queue_)->waits, 2) << "each process sees those of both";
}

TEST_P(WaitingPullsTest, LeaveOnePullToTheNextAsk) {
  WaitingPulls waits(client_->prompt.get(), base::RealClock());
  for (int i = 0; i < 10; ++i) {
    const auto asked = waits.Ask(queue_, absl::Milliseconds(1));
    ASSERT_TRUE(asked.ok()) << asked.status();
    EXPECT_FALSE(asked->has_value());
  }
  EXPECT_EQ(AtServer(), 1);
  Put("a");
  std::optional<nats::Incoming> message;
  while (!message.has_value()) message = waits.Ask(queue_, absl::Minutes(1)).value();
  EXPECT_EQ(message->data, "a") << "what came between two calls has come again";
}

TEST_P(WaitingPullsTest, RefuseAPatienceThatIsNone) {
  Arrivals arrivals;
  EXPECT_TRUE(absl::IsInvalidArgument(
      store().AwaitMessage(queue_, absl::ZeroDuration(), arrivals.Taker()).status()));
  EXPECT_TRUE(absl::IsNotFound(
      store().AwaitMessage({"acme", "none"}, absl::Seconds(1), arrivals.Taker()).status()));
}

INSTANTIATE_TEST_SUITE_P(Servers, WaitingPullsTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::queue::jetstream
