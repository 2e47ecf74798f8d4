// SPDX-License-Identifier: Apache-2.0

// The state after the server's death, and the answers to callers while the server is away.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"

namespace muster::queue::jetstream {

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(JetStreamQueueStoreTest, KeepsWhatItAcknowledgedWhenTheServerIsKilled) {
  ShortenLeases();
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

// The killed server forgets deletes in the middle of its stream, but not that they were
// acknowledged: 2.9 would report work for ever, and never deliver it.
TEST_P(JetStreamQueueStoreTest,
       SaysThatNothingIsLeftWhenAKilledServerHasMessagesBackThatAreSettled) {
  ShortenLeases();
  // A leased message keeps the stream from forgetting the messages behind it one by one.
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
  // New messages are counted and found as usual.
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  EXPECT_EQ(store().Stats(queue_)->ready, 2);
  EXPECT_THAT(Drain(), ElementsAre("body 0", "body 1"));
}

TEST_P(JetStreamQueueStoreTest, IsUnavailableWithoutAServerAndGoesOnWhenItIsBack) {
  Options impatient = options_;
  impatient.timeout = absl::Milliseconds(500);
  const Client client(server_.url(), impatient);
  const auto put = [&] { return client.store->Put(queue_, Bodies(3, "id")); };
  server_.Kill();
  EXPECT_TRUE(absl::IsUnavailable(put().status())) << put().status();
  EXPECT_TRUE(absl::IsUnavailable(client.store->Receive(queue_, {}).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.store->Stats(queue_).status()));
  server_.Restart();
  // The buffered messages arrive, too: the dedup ids drop the copies.
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
  impatient.timeout = absl::Milliseconds(500);
  const auto store = OpenJetStreamQueues(connection.get(), impatient).value();
  std::vector<queue::NewMessage> messages = Bodies(40, "id");  // 10 MiB
  for (queue::NewMessage& message : messages) message.body.resize(size_t{256} << 10, ' ');
  const auto put = [&] { return store->Put(queue_, messages); };
  const auto await = [&](bool wanted) {
    base::MutexLock lock(&mu);
    while (connected != wanted) changed.Wait(&mu);
  };
  ASSERT_TRUE(Insist([&] { return store->Stats(queue_); }).ok()) << "it knows the queue";

  server_.Kill();
  await(false);
  // Some of them may have been buffered, by any of the puts: the outcome is unknown.
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
  const std::vector<std::string> drained = Drain();  // one of them twice, if its lease lapses
  EXPECT_EQ(std::set<std::string>(drained.begin(), drained.end()).size(), 40U);
}

// The server keeps the notes in memory: its death loses all earlier notes, but no later ones.
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

// A worker that stops in a rolling restart which takes the server along: what it gave back came
// when its lease had run out.
TEST_P(JetStreamQueueStoreTest, HasWhatWasGivenBackAtOnceAlsoAfterTheServerWasRestarted) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Hours(1)).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  const auto held = store().Receive(queue_, {2});
  ASSERT_EQ(held->size(), 2u) << held.status();
  std::vector<queue::UpdateRequest> requests(2);
  for (size_t i = 0; i < 2; ++i) requests[i].receipt = (*held)[i].receipt;
  ASSERT_TRUE(store().Update(queue_, requests).ok());
  ASSERT_TRUE(store().Stats(queue_).ok());  // the server has seen what was said before
  server_.Stop();
  server_.Restart();
  size_t again = 0;
  for (int looks = 0; again < 2 && looks < 5'000; ++looks) {
    const auto messages = Insist([&] { return store().Receive(queue_, {2}); });
    ASSERT_TRUE(messages.ok()) << messages.status();
    again += messages->size();
  }
  EXPECT_EQ(again, 2u);
}

TEST_P(JetStreamQueueStoreTest, AnswersInTimeWhileTheServerIsFrozen) {
  Options impatient = options_;
  impatient.timeout = absl::Milliseconds(500);
  auto client = std::make_unique<Client>(server_.url(), impatient);
  server_.Freeze();
  std::vector<queue::NewMessage> large(32);
  for (queue::NewMessage& message : large) message.body.assign(500'000, 'x');
  EXPECT_TRUE(absl::IsUnavailable(client->store->Put(queue_, large).status()));
  client.reset();  // the client does not wait for the server either
  server_.Thaw();
}

}  // namespace

// Queues with a stream or consumer that another program deleted, changed or replaced.

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(JetStreamQueueStoreTest, DeletesWhatAnEarlierDeleteLeft) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
  EXPECT_TRUE(store().DeleteQueue(queue_).ok());
  EXPECT_TRUE(absl::IsNotFound(store().DeleteQueue(queue_)));
  EXPECT_TRUE(store().CreateQueue(queue_, {{"other", "metadata"}}).ok());
}

// Late acknowledgements move the floor of a server that was killed over messages that are with a
// worker (2.9). What was removed there was lost.
TEST_P(JetStreamQueueStoreTest, RemovesNothingThatIsLeasedWhateverTheAckFloorSays) {
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  ASSERT_EQ(store().Receive(queue_, {1})->size(), 1u);
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  QueueStatsReader reader(queue_, &jetstream, base::RealClock());
  const nats::StreamState stream = jetstream.GetStream(StreamOf(queue_)).value();
  nats::ConsumerState consumer;
  consumer.delivered_sequence = consumer.settled_sequence = stream.first_sequence;
  consumer.ack_pending = 1;
  for (int looks = 0; looks < 3; ++looks) ASSERT_TRUE(reader.Collect(stream, consumer).ok());
  EXPECT_EQ(jetstream.GetStream(StreamOf(queue_))->messages, 2u);
  consumer.ack_pending = 0;
  for (int looks = 0; looks < 2; ++looks) ASSERT_TRUE(reader.Collect(stream, consumer).ok());
  EXPECT_EQ(jetstream.GetStream(StreamOf(queue_))->messages, 1u) << "now it is a leftover";
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

// An administrator's settings, such as a bound and a description, which no process that makes sure
// of the queue undoes.
TEST_P(JetStreamQueueStoreTest, KeepsTheSettingsThatAnAdministratorHasGivenItsStreams) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  for (const std::string& stream :
       {StreamOf(queue_), AsideStreamOf(queue_), std::string(kAttemptsStream)}) {
    nlohmann::json config = *jetstream.StreamConfig(stream);
    config["description"] = "of the billing team";
    if (stream == StreamOf(queue_)) config["max_bytes"] = 1 << 20;
    ASSERT_TRUE(jetstream.Call(absl::StrCat("STREAM.UPDATE.", stream), config).ok());
  }
  const Client next(server_.url(), options_);
  ASSERT_TRUE(next.store->CreateQueue(queue_, {}).ok());
  for (const std::string& stream :
       {StreamOf(queue_), AsideStreamOf(queue_), std::string(kAttemptsStream)}) {
    const nlohmann::json config = *jetstream.StreamConfig(stream);
    EXPECT_EQ(config.value("description", ""), "of the billing team") << stream;
  }
  EXPECT_EQ((*jetstream.StreamConfig(StreamOf(queue_)))["max_bytes"], 1 << 20);
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

// The stream of the messages is deleted and made anew, and gives the same sequences again; the
// poison and the notes of attempts stay.
class RestartedSequencesTest : public JetStreamQueueStoreTest {
 protected:
  void LoseTheStream() {
    nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
    ASSERT_TRUE(jetstream.DeleteStream(StreamOf(queue_)).ok());
    ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  }

  queue::Message PutAndReceive(const std::string& body) {
    queue::NewMessage message;
    message.body = body;
    EXPECT_TRUE(store().Put(queue_, {message}).ok());
    return ReceiveOne();
  }

  queue::Message ReceiveOne() {
    const auto held = store().Receive(queue_, {1});
    EXPECT_EQ(held->size(), 1u) << held.status();
    return held->empty() ? queue::Message() : held->front();
  }

  absl::Status DeadLetter(const queue::Receipt& receipt) {
    return store().DeadLetter(queue_, {{receipt, {"it hung", 3, "worker-1", {}}}})->front();
  }

  // Hands the message back without an attempt.
  void GiveBack(const queue::Receipt& receipt) {
    queue::UpdateRequest release;
    release.receipt = receipt;
    ASSERT_TRUE(store().Update(queue_, {release})->front().ok());
  }

  std::vector<std::string> PoisonPagedByOne() {
    std::vector<std::string> bodies;
    std::string after;
    for (;;) {
      const auto page = store().ListPoison(queue_, after, 1);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok() || page->empty()) return bodies;
      bodies.push_back(page->front().body);
      after = page->front().message_id;
    }
  }
};

TEST_P(RestartedSequencesTest, KeepThePoisonOfEarlierMessages) {
  for (const char* body : {"first", "second", "third"}) {
    ASSERT_TRUE(DeadLetter(PutAndReceive(body).receipt).ok());
    LoseTheStream();
  }
  EXPECT_EQ(store().Stats(queue_)->poison, 3);
  EXPECT_THAT(PoisonPagedByOne(), ElementsAre("first", "second", "third"));
  const std::string second = store().ListPoison(queue_, "", 3)->at(1).message_id;
  EXPECT_EQ(*store().Redrive(queue_, {second}, 1), 1);
  EXPECT_EQ(ReceiveOne().body, "second");
  EXPECT_THAT(PoisonPagedByOne(), ElementsAre("first", "third"));
}

TEST_P(RestartedSequencesTest, ChargeNoMessageForAnEarlierOne) {
  for (const bool ended : {false, true}) {
    const queue::Message first = PutAndReceive("first");
    ASSERT_TRUE(store().BeginAttempt(queue_, {first.receipt})->front().ok());
    if (ended) {
      queue::UpdateRequest release;
      release.receipt = first.receipt;
      release.attempt_ended = true;
      ASSERT_TRUE(store().Update(queue_, {release})->front().ok());
    }
    LoseTheStream();
    GiveBack(PutAndReceive("sound").receipt);
    const queue::Message sound = ReceiveOne();
    EXPECT_EQ(sound.body, "sound");
    EXPECT_EQ(sound.attempts, 0);
    EXPECT_FALSE(sound.interrupted);
    LoseTheStream();
  }
}

TEST_P(RestartedSequencesTest, SaveALaterMessageFromTheHolderOfAnEarlierOne) {
  const queue::Message first = PutAndReceive("first");
  LoseTheStream();
  const queue::Message sound = PutAndReceive("sound");
  EXPECT_TRUE(absl::IsFailedPrecondition(DeadLetter(first.receipt)));
  EXPECT_EQ(store().Stats(queue_)->poison, 0);
  EXPECT_TRUE(store().Delete(queue_, {sound.receipt})->front().ok());
}

INSTANTIATE_TEST_SUITE_P(Servers, RestartedSequencesTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()));

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

}  // namespace

}  // namespace muster::queue::jetstream
