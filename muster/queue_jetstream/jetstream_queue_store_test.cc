// What the conformance suite does not ask of an engine whose messages lie with a server: its death,
// its settings, and callers in several processes. On each server that NatsServer::Programs names.
#include "muster/queue_jetstream/jetstream_queue_store.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mismatch.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/nats/testing/nats_server.h"
#include "muster/queue/lease_metadata.h"
#include "muster/queue_jetstream/names.h"
#include "nlohmann/json.hpp"

namespace muster::queue_jetstream {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One process's way to the server.
struct Client {
  Client(const std::string& url, Options options)
      : connection(nats::Connection::Open(url, {}).value()),
        prompt(nats::Connection::Open(url, {.prompt = true}).value()) {
    options.prompt = prompt.get();
    store = OpenJetStreamQueues(connection.get(), options).value();
  }

  std::unique_ptr<nats::Connection> connection;
  std::unique_ptr<nats::Connection> prompt;
  std::unique_ptr<queue::QueueStore> store;
};

class JetStreamQueueStoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  JetStreamQueueStoreTest() {
    options_.settings.lease = absl::Milliseconds(300);
    options_.timeout = absl::Seconds(10);
    client_ = std::make_unique<Client>(server_.url(), options_);
    EXPECT_TRUE(store().CreateQueue(queue_, {}).ok());
  }

  queue::QueueStore& store() { return *client_->store; }

  static std::vector<queue::NewMessage> Bodies(int count, const std::string& id_prefix = "") {
    std::vector<queue::NewMessage> messages;
    for (int i = 0; i < count; ++i) {
      messages.emplace_back().body = absl::StrCat("body ", i);
      if (!id_prefix.empty()) messages.back().dedup_id = absl::StrCat(id_prefix, i);
    }
    return messages;
  }

  // Tries for as long as the server is away.
  template <typename Call>
  auto Insist(Call call) {
    auto result = call();
    for (int i = 0; i < 100 && absl::IsUnavailable(result.status()); ++i) result = call();
    return result;
  }

  // Receives and deletes until nothing is left.
  std::vector<std::string> Drain() {
    std::vector<std::string> bodies;
    while (store().Stats(queue_)->stored() > 0) {
      const auto messages = store().Receive(queue_, {32});
      EXPECT_TRUE(messages.ok()) << messages.status();
      std::vector<queue::Receipt> receipts;
      for (const queue::Message& message : *messages) {
        bodies.push_back(message.body);
        receipts.push_back(message.receipt);
      }
      EXPECT_TRUE(store().Delete(queue_, receipts).ok());
    }
    std::sort(bodies.begin(), bodies.end());
    return bodies;
  }

  const queue::QueueId queue_{"acme", "work"};
  nats::testing::NatsServer server_{GetParam()};
  Options options_;
  std::unique_ptr<Client> client_;
};

TEST_P(JetStreamQueueStoreTest, KeepsWhatItAcknowledgedWhenTheServerIsKilled) {
  ASSERT_TRUE(store().Put(queue_, Bodies(100)).ok());
  const auto held = store().Receive(queue_, {10});
  ASSERT_EQ(held->size(), 10u);
  std::vector<queue::Receipt> deleted;
  for (size_t i = 0; i < 5; ++i) deleted.push_back((*held)[i].receipt);
  ASSERT_TRUE(store().Delete(queue_, deleted).ok());
  server_.Restart();
  queue::NewMessage last;
  last.body = "last";
  const auto more = Insist([&] { return store().Put(queue_, {last}); });
  EXPECT_TRUE(more.ok()) << more.status();
  const std::vector<std::string> rest = Drain();
  EXPECT_THAT(rest, Contains("last"));
  for (int i = 5; i < 100; ++i) EXPECT_THAT(rest, Contains(absl::StrCat("body ", i)));
  // The server may have forgotten the deletes.
  EXPECT_LE(rest.size(), 101u);
}

// The server forgets deletes in the middle of its stream, but not that they were acknowledged: 2.9
// would say for good that there is work, and nobody would ever be given it.
TEST_P(JetStreamQueueStoreTest,
       SaysThatNothingIsLeftWhenAKilledServerHasMessagesBackThatAreSettled) {
  // One that is held up keeps the stream from forgetting those behind it one by one.
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  ASSERT_EQ(store().Receive(queue_, {1})->size(), 1u);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store().Put(queue_, Bodies(20)).ok());
    const auto held = store().Receive(queue_, {20});
    ASSERT_TRUE(held.ok()) << held.status();
    std::vector<queue::Receipt> receipts;
    for (const queue::Message& message : *held) receipts.push_back(message.receipt);
    ASSERT_TRUE(store().Delete(queue_, receipts).ok());
  }
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  server_.Restart();
  ASSERT_TRUE(Insist([&] { return store().Stats(queue_); }).ok());
  Drain();  // ends when nothing is stored
  // What comes now is counted and found as ever.
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  EXPECT_EQ(store().Stats(queue_)->ready, 2);
  EXPECT_THAT(Drain(), ElementsAre("body 0", "body 1"));
}

TEST_P(JetStreamQueueStoreTest, IsUnavailableWithoutAServerAndGoesOnWhenItIsBack) {
  Options impatient = options_;
  impatient.timeout = absl::Milliseconds(50);
  const Client client(server_.url(), impatient);
  const auto put = [&] { return client.store->Put(queue_, Bodies(3, "id")); };
  server_.Kill();
  EXPECT_TRUE(absl::IsUnavailable(put().status())) << put().status();
  EXPECT_TRUE(absl::IsUnavailable(client.store->Receive(queue_, {}).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.store->Stats(queue_).status()));
  server_.Restart();
  // What was buffered meanwhile arrives, too: the ids make one of both.
  ASSERT_TRUE(Insist(put).ok());
  EXPECT_THAT(Drain(), ElementsAre("body 0", "body 1", "body 2"));
}

TEST_P(JetStreamQueueStoreTest, RefusesMoreThanMayWaitForALostServerAndHasAllOnceWhenItIsBack) {
  base::Mutex mu;
  base::CondVar changed;
  bool connected = true;
  const auto connection = nats::Connection::Open(server_.url(), {.on_change =
                                                                     [&](bool now) {
                                                                       base::MutexLock lock(&mu);
                                                                       connected = now;
                                                                       changed.NotifyAll();
                                                                     }})
                              .value();
  Options impatient = options_;
  impatient.timeout = absl::Milliseconds(50);
  const auto store = OpenJetStreamQueues(connection.get(), impatient).value();
  std::vector<queue::NewMessage> messages = Bodies(40, "id");  // 10 MiB
  for (queue::NewMessage& message : messages) message.body.resize(size_t{256} << 10, ' ');
  const auto put = [&] { return store->Put(queue_, messages); };
  const auto await = [&](bool wanted) {
    base::MutexLock lock(&mu);
    while (connected != wanted) changed.Wait(&mu);
  };
  ASSERT_TRUE(store->Stats(queue_).ok()) << "it knows the queue";

  server_.Kill();
  await(false);
  // A part of them may have been buffered, whichever put it was: the outcome is unknown.
  for (int i = 0; i < 10; ++i) {
    const absl::Status refused = put().status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr(i == 0 ? "" : "buffer"));
  }
  server_.Restart();
  await(true);
  const auto again = Insist(put);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(store->Stats(queue_)->ready, 40);
  const std::vector<std::string> drained = Drain();  // one or the other twice, if its lease lapses
  EXPECT_EQ(std::set<std::string>(drained.begin(), drained.end()).size(), 40U);
}

TEST_P(JetStreamQueueStoreTest, PutsMoreThanOneWindowInOneCall) {
  const auto put = store().Put(queue_, Bodies(1000, "id"));
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_EQ(put->size(), 1000u);
  const std::vector<std::string> drained = Drain();  // one or the other twice, if its lease lapses
  EXPECT_EQ(std::set<std::string>(drained.begin(), drained.end()).size(), 1000u);
}

// Servers trim and fold what is in a header.
TEST_P(JetStreamQueueStoreTest, TellsDedupIdsApartWhateverBytesTheyHave) {
  for (const char* id :
       {"a b", "a\nb", " a b", "a b ", "muster.redrive.1.1", "base64.YSBi", "\xff"}) {
    std::vector<queue::NewMessage> messages(1);
    messages[0].dedup_id = id;
    EXPECT_FALSE(store().Put(queue_, messages)->front().duplicate) << id;
    EXPECT_TRUE(store().Put(queue_, messages)->front().duplicate) << id;
  }
}

TEST_P(JetStreamQueueStoreTest, PutsAnIdAgainOnceItsTimeIsOver) {
  options_.settings.dedup_window = absl::Milliseconds(100);
  const Client client(server_.url(), options_);
  const queue::QueueId brief{"acme", "brief"};
  ASSERT_TRUE(client.store->CreateQueue(brief, {}).ok());
  ASSERT_FALSE(client.store->Put(brief, Bodies(1, "id"))->front().duplicate);
  EXPECT_TRUE(client.store->Put(brief, Bodies(1, "id"))->front().duplicate);
  bool duplicate = true;
  while (duplicate) duplicate = client.store->Put(brief, Bodies(1, "id"))->front().duplicate;
  EXPECT_EQ(client.store->Stats(brief)->stored(), 2);
}

TEST_P(JetStreamQueueStoreTest, SharesAQueueAmongProcesses) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  const auto mine = store().Receive(queue_, {1}), theirs = other.store->Receive(queue_, {1});
  ASSERT_EQ(mine->size(), 1u);
  ASSERT_EQ(theirs->size(), 1u);
  EXPECT_NE(mine->front().body, theirs->front().body);
  EXPECT_TRUE(other.store->Receive(queue_, {1})->empty());
}

// The killer of its process is known to whoever gets it next, in another one.
TEST_P(JetStreamQueueStoreTest, TellsAnotherProcessThatAHolderDiedAtWork) {
  {
    Client doomed(server_.url(), options_);
    ASSERT_TRUE(doomed.store->Put(queue_, Bodies(2)).ok());
    const auto held = doomed.store->Receive(queue_, {2});
    ASSERT_EQ(held->size(), 2u);
    ASSERT_EQ(doomed.store->BeginAttempt(queue_, {held->front().receipt})->front().value(), 1);
  }
  // Either may come more than once before the other.
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

// The server would take a late word for the new holder's.
// A program of its own, which the test below starts.
TEST(HolderTest, DISABLED_DiesAsSoonAsItHasBegun) {
  Client holder(std::getenv("MUSTER_TEST_NATS_URL"), {});
  const auto messages = holder.store->Receive({"acme", "work"}, {1});
  ASSERT_TRUE(messages.ok() && !messages->empty()) << messages.status();
  ASSERT_TRUE(holder.store->BeginAttempt({"acme", "work"}, {messages->front().receipt}).ok());
  std::raise(SIGKILL);
}

TEST_P(JetStreamQueueStoreTest, KnowsWhatAHolderBeganThatWasKilledRightThen) {
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const std::string died =
      absl::StrCat("MUSTER_TEST_NATS_URL=", server_.url(), " /proc/", getpid(),
                   "/exe --gtest_also_run_disabled_tests --gtest_brief=1",
                   " --gtest_filter=HolderTest.DISABLED_DiesAsSoonAsItHasBegun");
  ASSERT_NE(std::system(died.c_str()), 0);
  absl::SleepFor(options_.settings.lease * 1.5);
  const auto again = store().Receive(queue_, {1});
  ASSERT_TRUE(again.ok() && again->size() == 1) << again.status();
  EXPECT_TRUE(again->front().interrupted);
  EXPECT_EQ(again->front().attempts, 1);
}

// The server has lost it with its memory, and nobody waits for an answer to each note.
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

TEST_P(JetStreamQueueStoreTest, LetsALateHolderTakeNothingFromTheNextOne) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const queue::Receipt late = store().Receive(queue_, {1})->front().receipt;
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
    // When a redelivery reaches nobody, a 2.9 server may count from 1 again: as a first delivery
    // the message is not looked up, and is known again the next time.
    if (again.empty() || again.front().dequeue_count == 1) continue;
    EXPECT_TRUE(again.front().interrupted) << "the next holder began, and never ended it";
    break;
  }
}

// The notes lie in the server's memory: those that it had are lost, later ones are not.
TEST_P(JetStreamQueueStoreTest, ChargesAttemptsAgainAfterTheServerWasRestarted) {
  server_.Restart();
  ASSERT_TRUE(Insist([&] { return store().Put(queue_, Bodies(1)); }).ok());
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const auto held = store().Receive(queue_, {1});
    ASSERT_EQ(held->size(), 1u) << held.status();
    EXPECT_EQ(held->front().attempts, attempt - 1);
    ASSERT_TRUE(store().BeginAttempt(queue_, {held->front().receipt})->front().ok());
    queue::UpdateRequest release;
    release.receipt = held->front().receipt;
    release.attempt_ended = true;
    ASSERT_TRUE(store().Update(queue_, {release})->front().ok());
  }
}

TEST_P(JetStreamQueueStoreTest, DeletesWhatAnEarlierDeleteLeft) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  EXPECT_TRUE(store().DeleteQueue(queue_).ok());
  EXPECT_TRUE(absl::IsNotFound(store().DeleteQueue(queue_)));
  EXPECT_TRUE(store().CreateQueue(queue_, {{"other", "metadata"}}).ok());
}

TEST_P(JetStreamQueueStoreTest, AnswersInTimeWhileTheServerIsFrozen) {
  Options impatient = options_;
  impatient.timeout = absl::Milliseconds(100);
  auto client = std::make_unique<Client>(server_.url(), impatient);
  server_.Freeze();
  std::vector<queue::NewMessage> large(32);
  for (queue::NewMessage& message : large) message.body.assign(500'000, 'x');
  EXPECT_TRUE(absl::IsUnavailable(client->store->Put(queue_, large).status()));
  client.reset();  // does not wait for the server either
  server_.Thaw();
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

// How long leases of `queue` last, as the server has it.
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

// What was deleted behind its back is made again, whatever metadata the caller has.
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
  EXPECT_GT(lasts(other, queue_), absl::Minutes(6));  // since it saw the queue first
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Hours(3)).ok());
  ASSERT_TRUE(other.store->Stats(queue_).ok());
  EXPECT_GT(lasts(other, queue_), absl::Hours(2));
}

// A job whose visibility changes while its items are in hand: the server goes by the new one.
TEST_P(JetStreamQueueStoreTest, FollowsANewVisibilityWithTheLeasesThatItHolds) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const queue::Receipt held = store().Receive(queue_, {1})->front().receipt;
  ASSERT_TRUE(store().BeginAttempt(queue_, {held})->front().ok());
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Milliseconds(200)).ok());
  std::vector<queue::Message> again;
  while (again.empty()) again = store().Receive(queue_, {1}).value();
  EXPECT_EQ(again.front().body, "body 0");
  EXPECT_TRUE(again.front().interrupted);
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Minutes(7)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store().BeginAttempt(queue_, {held})->front().status()));
  EXPECT_TRUE(store().Delete(queue_, {again.front().receipt})->front().ok());
  EXPECT_EQ(store().Stats(queue_)->stored(), 0);
}

TEST_P(JetStreamQueueStoreTest, RefusesAStreamThatIsSetOtherwise) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  const queue::QueueId taken{"acme", "taken"};
  ASSERT_TRUE(jetstream
                  .EnsureStream({{"name", StreamOf(taken)},
                                 {"subjects", {SubjectOf(taken)}},
                                 {"storage", "memory"},
                                 {"retention", "limits"}})
                  .ok());
  const absl::Status status = store().CreateQueue(taken, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(StreamOf(taken)));
  EXPECT_EQ(base::MismatchOf(status),
            (base::Mismatch{StreamOf(taken), "retention", "\"limits\"", "\"workqueue\""}));
}

TEST_P(JetStreamQueueStoreTest, SaysWhatWasPutInAQueuesPlaceAndMakesItAnewOnceThatIsGone) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  ASSERT_TRUE(jetstream
                  .EnsureStream({{"name", StreamOf(queue_)},
                                 {"subjects", {"elsewhere"}},
                                 {"storage", "file"},
                                 {"retention", "limits"}})
                  .ok());
  EXPECT_TRUE(absl::IsNotFound(store().Put(queue_, Bodies(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Receive(queue_, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Stats(queue_).status()));
  const absl::Status status = store().CreateQueue(queue_, {});
  EXPECT_EQ(base::MismatchOf(status),
            (base::Mismatch{StreamOf(queue_), "retention", "\"limits\"", "\"workqueue\""}))
      << status;
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  EXPECT_THAT(Drain(), ElementsAre("body 0", "body 1"));
}

TEST_P(JetStreamQueueStoreTest, MendsWhatTheServerLetsItChange) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  nlohmann::json config = *jetstream.StreamConfig(StreamOf(queue_));
  config["subjects"] = {"elsewhere"};
  ASSERT_TRUE(jetstream.Call(absl::StrCat("STREAM.UPDATE.", StreamOf(queue_)), config).ok());
  EXPECT_TRUE(absl::IsNotFound(store().Put(queue_, Bodies(1)).status()));
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  EXPECT_THAT(Drain(), ElementsAre("body 0"));
}

TEST_P(JetStreamQueueStoreTest, MakesALostConsumerAgain) {
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(
      jetstream.Call(absl::StrCat("CONSUMER.DELETE.", StreamOf(queue_), ".", kConsumer), nullptr)
          .ok());
  EXPECT_TRUE(absl::IsNotFound(store().Receive(queue_, {}).status()));
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  EXPECT_THAT(Drain(), ElementsAre("body 0"));
}

TEST_P(JetStreamQueueStoreTest, AnswersNotFoundOnceTheStreamsWereDeleted) {
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  EXPECT_TRUE(absl::IsNotFound(store().Put(queue_, Bodies(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Receive(queue_, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Stats(queue_).status()));
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
}

TEST_P(JetStreamQueueStoreTest, MakesAQueueAgainThatAnotherProcessDeleted) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(other.store->DeleteQueue(queue_).ok());
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
  EXPECT_EQ(other.store->Receive(queue_, {1})->size(), 1u);
}

TEST_P(JetStreamQueueStoreTest, SeesMetadataThatAnotherProcessGaveAQueueOfItsOwnMaking) {
  Client other(server_.url(), options_);
  ASSERT_TRUE(other.store->SetMetadata(queue_, {{"owner", "billing"}}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store().CreateQueue(queue_, {})));
  EXPECT_TRUE(store().CreateQueue(queue_, {{"owner", "billing"}}).ok());
}

TEST_P(JetStreamQueueStoreTest, SetsAMessageAsideOnlyOnceHoweverOftenItIsAsked) {
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const queue::Receipt receipt = store().Receive(queue_, {1})->front().receipt;
  queue::DeadLetterRequest request;
  request.receipt = receipt;
  request.cause.reason = "line one\r\nline two \"quoted\" \xff";
  ASSERT_TRUE(store().DeadLetter(queue_, {request})->front().ok());
  EXPECT_TRUE(absl::IsNotFound(store().DeadLetter(queue_, {request})->front()));
  const auto poison = store().ListPoison(queue_, "", 10);
  ASSERT_TRUE(poison.ok()) << poison.status();
  ASSERT_EQ(poison->size(), 1u);
  EXPECT_THAT(poison->front().cause.reason, HasSubstr("line one\r\nline two \"quoted\" "));
  EXPECT_EQ(store().Stats(queue_)->poison, 1);
}

// What lies aside, as the first release wrote it, and as a newer one might.
TEST_P(JetStreamQueueStoreTest, ReadsMetadataAndCausesOfOtherReleases) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  for (const char* cause :
       {R"({"attempts":5,"holder":"p-1","insertion_ns":1000,"reason":"it died","time_ns":2000})",
        R"({"attempts":5,"holder":"p-1","insertion_ns":1000,"reason":"it died","time_ns":2000,)"
        R"("fingerprint":{"newer":true}})"}) {
    ASSERT_TRUE(jetstream
                    .Publish({.subject = PoisonSubjectOf(queue_, "7"),
                              .headers = {{"Muster-Cause", absl::Base64Escape(cause)}},
                              .data = "body"})
                    .ok());
    const auto poison = store().ListPoison(queue_, "", 10);
    ASSERT_TRUE(poison.ok() && poison->size() == 1) << poison.status();
    EXPECT_EQ(poison->front().body, "body");
    EXPECT_EQ(poison->front().cause.reason, "it died");
    EXPECT_EQ(poison->front().cause.attempts, 5);
    EXPECT_EQ(poison->front().cause.time, absl::FromUnixNanos(2000));
  }
  ASSERT_TRUE(jetstream
                  .Publish({.subject = MetadataSubjectOf(queue_),
                            .data = R"({"muster-newer":"x","owner":"billing"})"})
                  .ok());
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Seconds(90)).ok());
  EXPECT_EQ(jetstream.LastMessage(AsideStreamOf(queue_), MetadataSubjectOf(queue_))->data,
            R"({"muster-newer":"x","muster-visibility":"1m30s","owner":"billing"})");
}

// Redriven or not, a body is bytes that others wrote.
TEST_P(JetStreamQueueStoreTest, KeepsABodyAsItIsThroughPoisonAndRedrive) {
  queue::NewMessage message;
  message.body = std::string("\x08\x05\xa2\x06\x03new\0", 9);
  ASSERT_TRUE(store().Put(queue_, {message}).ok());
  queue::DeadLetterRequest request;
  request.receipt = store().Receive(queue_, {1})->front().receipt;
  ASSERT_TRUE(store().DeadLetter(queue_, {request})->front().ok());
  EXPECT_EQ(store().Redrive(queue_, {}, 1).value(), 1);
  EXPECT_EQ(store().Receive(queue_, {1})->front().body, message.body);
}

TEST_P(JetStreamQueueStoreTest, SaysHowLargeABodyMayBe) {
  queue::NewMessage message;
  message.body = std::string(store().traits().max_body_bytes + 1, 'x');
  const absl::Status status = store().Put(queue_, {message}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  message.body.pop_back();
  message.dedup_id = std::string(queue::kMaxDedupIdBytes, 'i');
  EXPECT_TRUE(store().Put(queue_, {message}).ok());
}

TEST_P(JetStreamQueueStoreTest, NeedsAServerWithJetStream) {
  nats::testing::NatsServer plain(GetParam(), "", nats::testing::NatsServer::Persistence::kNone);
  const auto connection = nats::Connection::Open(plain.url(), {}).value();
  const auto store = OpenJetStreamQueues(connection.get(), {});
  EXPECT_TRUE(absl::IsFailedPrecondition(store.status())) << store.status();
}

INSTANTIATE_TEST_SUITE_P(Servers, JetStreamQueueStoreTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::queue_jetstream
