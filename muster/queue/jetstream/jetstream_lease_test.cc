// SPDX-License-Identifier: Apache-2.0

// Holders in several processes: they die, settle late, or end each other's attempts.

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/queue_store.h"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"
#include "tests/fakes/queue/jetstream/tapped_connection.h"

namespace muster::queue::jetstream {

namespace {

TEST_P(JetStreamQueueStoreTest, SharesAQueueAmongProcesses) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  const auto mine = store().Receive(queue_, {1}), theirs = other.store->Receive(queue_, {1});
  ASSERT_EQ(mine->size(), 1u);
  ASSERT_EQ(theirs->size(), 1u);
  EXPECT_NE(mine->front().body, theirs->front().body);
  EXPECT_TRUE(other.store->Receive(queue_, {1})->empty());
}

// A message has killed its process: the next receiver is told so, also in another process.
TEST_P(JetStreamQueueStoreTest, TellsAnotherProcessThatAHolderDiedAtWork) {
  ShortenLeases();
  {
    Client doomed(server_.url(), options_);
    ASSERT_TRUE(doomed.store->Put(queue_, Bodies(2)).ok());
    const auto held = doomed.store->Receive(queue_, {2});
    ASSERT_EQ(held->size(), 2u);
    ASSERT_EQ(doomed.store->BeginAttempt(queue_, {held->front().receipt})->front().value(), 1);
  }
  OutlastLeases();
  // Either message may come more than once before the other.
  std::map<std::string, queue::Message> again;
  while (again.size() < 2) {
    const auto more = store().Receive(queue_, {2});
    ASSERT_TRUE(more.ok()) << more.status();
    for (const queue::Message& message : *more) again[message.body] = message;
  }
  EXPECT_TRUE(again["body 0"].interrupted);
  EXPECT_EQ(again["body 0"].attempts, 1);
  EXPECT_FALSE(again["body 1"].interrupted) << "it was merely near";
  EXPECT_EQ(again["body 1"].attempts, 0);
}

// A program of its own, which the test below starts.
TEST(HolderTest, DISABLED_DiesAsSoonAsItHasBegun) {
  Client holder(std::getenv("MUSTER_TEST_NATS_URL"), {});
  const auto messages = holder.store->Receive({"acme", "work"}, {1});
  ASSERT_TRUE(messages.ok() && !messages->empty()) << messages.status();
  ASSERT_TRUE(holder.store->BeginAttempt({"acme", "work"}, {messages->front().receipt}).ok());
  std::raise(SIGKILL);
}

TEST_P(JetStreamQueueStoreTest, KnowsWhatAHolderBeganThatWasKilledRightThen) {
  ShortenLeases();
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const std::string died = absl::StrCat(
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX MUSTER_TEST_NATS_URL=", server_.url(),
      " /proc/", getpid(), "/exe --gtest_also_run_disabled_tests --gtest_brief=1",
      " --gtest_filter=HolderTest.DISABLED_DiesAsSoonAsItHasBegun");
  ASSERT_NE(std::system(died.c_str()), 0);
  OutlastLeases();
  std::vector<queue::Message> again;
  while (again.empty()) again = store().Receive(queue_, {1}).value();
  EXPECT_TRUE(again.front().interrupted);
  EXPECT_EQ(again.front().attempts, 1);
}

// The server has lost the stream with its memory, and the store does not wait for an answer to each
// note.
TEST_P(JetStreamQueueStoreTest, MakesTheNotesStreamAgainWhileAttemptsBegin) {
  ASSERT_TRUE(store().Put(queue_, Bodies(100)).ok());
  nats::JetStream jetstream(client_->connection.get(), options_.timeout);
  ASSERT_TRUE(jetstream.DeleteStream(kAttemptsStream).ok());
  for (int begun = 0; begun < 100;) {
    const auto messages = store().Receive(queue_, {32});
    ASSERT_TRUE(messages.ok()) << messages.status();
    for (const queue::Message& message : *messages) {
      const auto attempts = store().BeginAttempt(queue_, {message.receipt});
      ASSERT_TRUE(attempts.ok() && attempts->front().ok()) << attempts.status();
      ASSERT_TRUE(store().Delete(queue_, {message.receipt}).ok());
      ++begun;
    }
  }
  EXPECT_TRUE(jetstream.GetStream(kAttemptsStream).ok());
}

// The server would take a late settlement for the new holder's.
TEST_P(JetStreamQueueStoreTest, LetsALateHolderTakeNothingFromTheNextOne) {
  ShortenLeases();
  Client other(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const queue::Receipt late = store().Receive(queue_, {1})->front().receipt;
  OutlastLeases();
  std::vector<queue::Message> next;
  while (next.empty()) next = other.store->Receive(queue_, {1}).value();
  ASSERT_TRUE(other.store->BeginAttempt(queue_, {next.front().receipt})->front().ok());
  queue::UpdateRequest release;
  release.receipt = late;
  release.attempt_ended = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(store().Update(queue_, {release})->front().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      store().DeadLetter(queue_, {queue::DeadLetterRequest{late, {}}})->front()));
  EXPECT_EQ(store().Stats(queue_)->poison, 0);
  while (true) {
    const auto again = store().Receive(queue_, {1}).value();
    // When a redelivery reaches no receiver, a 2.9 server may count from 1 again: the store does
    // not look up the notes of a first delivery, but finds them the next time.
    if (again.empty() || again.front().dequeue_count == 1) continue;
    EXPECT_TRUE(again.front().interrupted) << "the next holder began, and never ended it";
    break;
  }
}

TEST_P(JetStreamQueueStoreTest, EndsTheAttemptOfAnotherProcessByItsReceipt) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const queue::Receipt receipt = store().Receive(queue_, {1})->front().receipt;
  ASSERT_TRUE(store().BeginAttempt(queue_, {receipt}).ok());
  ASSERT_TRUE(store().Stats(queue_).ok());  // the server has seen what was said before
  queue::UpdateRequest release;
  release.receipt = receipt;
  release.attempt_ended = true;
  ASSERT_TRUE(other.store->Update(queue_, {release})->front().ok());
  const auto again = other.store->Receive(queue_, {1});
  ASSERT_EQ(again->size(), 1u);
  EXPECT_EQ(again->front().attempts, 1);
  EXPECT_FALSE(again->front().interrupted);
}

}  // namespace

// The metadata of the queue sets how long leases last, also if another process has set it.

namespace {

// Returns the lease time of `queue`, from the server.
absl::Duration AckWait(nats::Connection* connection, const queue::QueueId& queue) {
  return nats::JetStream(connection, absl::Seconds(10))
      .GetConsumer(StreamOf(queue), kConsumer)
      ->ack_wait;
}

TEST_P(JetStreamQueueStoreTest, GivesEachQueueTheVisibilityInItsMetadata) {
  const queue::QueueId slow{"acme", "slow"};
  ASSERT_TRUE(store().CreateQueue(slow, queue::WithVisibility({}, absl::Minutes(7))).ok());
  EXPECT_EQ(AckWait(client_->connection.get(), slow), absl::Minutes(7));
  EXPECT_EQ(AckWait(client_->connection.get(), queue_), options_.settings.lease);
  ASSERT_TRUE(queue::SetVisibility(&store(), slow, std::nullopt).ok());
  EXPECT_EQ(AckWait(client_->connection.get(), slow), options_.settings.lease);
}

TEST_P(JetStreamQueueStoreTest, KeepsTheVisibilityOfAQueueThatACallerWouldHaveOtherwise) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  Options hasty = options_;
  hasty.settings.lease = absl::Seconds(1);
  const Client other(server_.url(), hasty);
  EXPECT_TRUE(absl::IsAlreadyExists(other.store->CreateQueue(queue_, {})));
  EXPECT_EQ(AckWait(client_->connection.get(), queue_), absl::Minutes(7));
}

// The store makes a deleted stream of an existing queue again, also if the caller passes other
// metadata.
TEST_P(JetStreamQueueStoreTest, MakesAQueueWholeAgainThatIsThereWithOtherMetadata) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store().CreateQueue(queue_, {})));
  EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
  EXPECT_EQ(AckWait(client_->connection.get(), queue_), absl::Minutes(7));
}

TEST_P(JetStreamQueueStoreTest, SeesTheVisibilityThatAnotherProcessHasSet) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  const Client other(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  const auto lasts = [](const Client& client, const queue::QueueId& queue) {
    const absl::Time now = absl::Now();
    return client.store->Receive(queue, {1})->front().next_visible_time - now;
  };
  EXPECT_GT(lasts(other, queue_), absl::Minutes(6));  // as at its first use of it
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Hours(3)).ok());
  ASSERT_TRUE(other.store->Stats(queue_).ok());
  EXPECT_GT(lasts(other, queue_), absl::Hours(2));
}

// The visibility of a job changes while its items are leased: the server applies the new
// visibility.
TEST_P(JetStreamQueueStoreTest, FollowsANewVisibilityWithTheLeasesThatItHolds) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const queue::Receipt held = store().Receive(queue_, {1})->front().receipt;
  ASSERT_TRUE(store().BeginAttempt(queue_, {held})->front().ok());
  ShortenLeases();
  OutlastLeases();
  std::vector<queue::Message> again;
  while (again.empty()) again = store().Receive(queue_, {1}).value();
  EXPECT_EQ(again.front().body, "body 0");
  EXPECT_TRUE(again.front().interrupted);
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store().BeginAttempt(queue_, {held})->front().status()));
  EXPECT_TRUE(store().Delete(queue_, {again.front().receipt})->front().ok());
  EXPECT_EQ(store().Stats(queue_)->stored(), 0);
}

// The server keeps a delay as what is left of a lease, so a delayed message came at once when the
// visibility of its job became shorter.
class DelayTest : public JetStreamQueueStoreTest {
 protected:
  // Has a message in the queue that has failed once, and is not to come before the result.
  absl::Time PutMessageWithDelay(absl::Duration delay) {
    EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
    queue::UpdateRequest request;
    request.receipt = store().Receive(queue_, {1})->front().receipt;
    EXPECT_TRUE(store().BeginAttempt(queue_, {request.receipt})->front().ok());
    request.visibility = delay;
    request.attempt_ended = true;
    const absl::Time due = absl::Now() + delay;
    EXPECT_TRUE(store().Update(queue_, {request})->front().ok());
    return due;
  }
};

TEST_P(DelayTest, LastsWhenLeasesBecomeShorter) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(other.store->Receive(queue_, {1})->empty()) << "it knows the leases of before";
  const absl::Time due = PutMessageWithDelay(absl::Seconds(3));
  ShortenLeases();
  std::vector<queue::Message> again;
  while (again.empty()) again = other.store->Receive(queue_, {1}).value();
  EXPECT_GE(absl::Now(), due);
  EXPECT_EQ(again.front().attempts, 1);
  EXPECT_FALSE(again.front().interrupted);
}

TEST_P(DelayTest, LastsForAReaderThatWaits) {
  const absl::Time due = PutMessageWithDelay(absl::Seconds(3));
  ShortenLeases();
  absl::Time came = absl::InfinitePast();
  while (came == absl::InfinitePast()) {
    absl::Notification ended;
    const auto wait = store().AwaitMessage(queue_, absl::Seconds(30),
                                           [&](absl::StatusOr<queue::Message> message) {
                                             if (message.ok()) came = absl::Now();
                                             ended.Notify();
                                             return message.ok();
                                           });
    ASSERT_TRUE(wait.ok()) << wait.status();
    ended.WaitForNotification();
  }
  EXPECT_GE(came, due);
}

// A delay of some seconds came after half an hour.
TEST_P(DelayTest, LastsNoLongerWhenLeasesBecomeLonger) {
  Client other(server_.url(), options_);
  PutMessageWithDelay(absl::Seconds(2));
  ASSERT_TRUE(queue::SetVisibility(other.store.get(), queue_, absl::Minutes(30)).ok());
  ASSERT_TRUE(store().GetMetadata(queue_).ok());  // as each processor that takes the job up again
  std::vector<queue::Message> again;
  for (int looks = 0; again.empty() && looks < 10'000; ++looks) {
    again = other.store->Receive(queue_, {1}).value();
  }
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again.front().attempts, 1);
}

// A reader that begins again at the head of its queue wants them all at once.
TEST_P(DelayTest, EndsWhenTheQueueIsReclaimed) {
  PutMessageWithDelay(absl::Hours(1));
  ShortenLeases();
  ASSERT_TRUE(store().Reclaim(queue_).ok());
  std::vector<queue::Message> again;
  while (again.empty()) again = store().Receive(queue_, {1}).value();
  EXPECT_EQ(again.front().dequeue_count, 2) << "it was put off once more";
}

INSTANTIATE_TEST_SUITE_P(Servers, DelayTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

// Messages that wait for a worker that is not there yet are given back again and again.
TEST_P(JetStreamQueueStoreTest, DeliversANewMessageBehindManyThatWereGivenBackWithADelay) {
  constexpr int kWaiting = 25'000;
  for (int put = 0; put < kWaiting; put += 1000) {
    ASSERT_TRUE(store().Put(queue_, Bodies(1000)).ok());
  }
  for (int given_back = 0; given_back < kWaiting;) {
    const auto held = store().Receive(queue_, {32});
    ASSERT_TRUE(held.ok()) << held.status();
    ASSERT_FALSE(held->empty()) << given_back << " wait";
    std::vector<queue::UpdateRequest> requests(held->size());
    for (size_t i = 0; i < held->size(); ++i) {
      requests[i].receipt = (*held)[i].receipt;
      requests[i].visibility = absl::Hours(1);
      requests[i].attempt_ended = true;
    }
    ASSERT_TRUE(store().Update(queue_, requests).ok());
    given_back += static_cast<int>(held->size());
  }
  queue::NewMessage sound;
  sound.body = "sound";
  ASSERT_TRUE(store().Put(queue_, {sound}).ok());
  const auto held = store().Receive(queue_, {1});
  ASSERT_EQ(held->size(), 1u) << held.status();
  EXPECT_EQ(held->front().body, "sound");
}

// Two words give a message back, and on a busy machine the second one leaves later: the server had
// delivered the message by then, and the second word took it from the receiver that had it.
TEST_P(JetStreamQueueStoreTest, GivesWhatASlowHolderGivesBackToOneReceiver) {
  Client other(server_.url(), options_);
  int received = 0;
  const auto look = [&] {
    const auto messages = other.store->Receive(queue_, {1});
    ASSERT_TRUE(messages.ok()) << messages.status();
    received += static_cast<int>(messages->size());
  };
  int words = 0;
  TappedConnection slow(client_->connection.get(), [&](absl::string_view subject) {
    if (StreamOfAck(subject).empty() || ++words == 1) return;
    // Meanwhile the server, which does so each 10 ms, has looked for what is due.
    for (const absl::Time until = absl::Now() + absl::Milliseconds(100); absl::Now() < until;) {
      look();
    }
  });
  const auto holder = OpenJetStreamQueues(&slow, options_).value();
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const auto held = holder->Receive(queue_, {1});
  ASSERT_EQ(held->size(), 1u) << held.status();
  queue::UpdateRequest give_back;
  give_back.receipt = held->front().receipt;
  ASSERT_TRUE(holder->Update(queue_, {give_back})->front().ok());
  for (int i = 0; i < 20; ++i) look();
  EXPECT_EQ(words, 2);
  EXPECT_EQ(received, 1);
}

}  // namespace

}  // namespace muster::queue::jetstream
