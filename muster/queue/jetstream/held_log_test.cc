// SPDX-License-Identifier: Apache-2.0

// A holder that died: what it held is given back before its leases end.

#include "muster/queue/jetstream/held_log.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/queue_store.h"
#include "tests/fakes/nats/nats_server.h"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"

namespace muster::queue::jetstream {

namespace {

// A program of its own, which the tests below start: it dies with all messages in hand, after it
// began the first.
TEST(DoomedHolderTest, DISABLED_DiesWithMessagesInHand) {
  Options options;
  options.holder = "doomed";
  Client holder(std::getenv("MUSTER_TEST_NATS_URL"), options);
  const auto messages = holder.store->Receive({"acme", "work"}, {32});
  ASSERT_TRUE(messages.ok() && !messages->empty()) << messages.status();
  ASSERT_TRUE(holder.store->BeginAttempt({"acme", "work"}, {messages->front().receipt}).ok());
  ASSERT_TRUE(holder.store->Delete({"acme", "work"}, {messages->back().receipt})->front().ok());
  std::raise(SIGKILL);
}

class DeadHolderTest : public JetStreamQueueStoreTest {
 protected:
  DeadHolderTest() {
    options_.holder = "survivor";
    client_ = std::make_unique<Client>(server_.url(), options_);
    options_.holder = "doomed";
  }

  // Runs DiesWithMessagesInHand.
  void LoseHolder() {
    const std::string died = absl::StrCat(
        "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX MUSTER_TEST_NATS_URL=", server_.url(),
        " /proc/", getpid(), "/exe --gtest_also_run_disabled_tests --gtest_brief=1",
        " --gtest_filter=DoomedHolderTest.DISABLED_DiesWithMessagesInHand");
    ASSERT_NE(std::system(died.c_str()), 0);
  }

  // Asks until the server has noticed that the connection of `holder` ended. Returns how many
  // messages were given back, at most.
  int64_t Release(Client& survivor, const std::string& holder = "doomed") {
    while (true) {
      const auto released = survivor.store->ReleaseHeldBy(holder, absl::ZeroDuration());
      if (absl::IsFailedPrecondition(released.status())) continue;
      EXPECT_TRUE(released.ok()) << released.status();
      return released.ok() && !released->empty() ? released->front().messages : 0;
    }
  }

  // A holder does not wait until the server has its notes. Who asks on another connection waits
  // here until so many messages are noted.
  void AwaitNoted(size_t count) {
    nats::JetStream jetstream(client_->connection.get(), options_.timeout);
    while (true) {
      const auto note = jetstream.LastMessage(kHeldStream, HeldSubjectOf("doomed", queue_, 0));
      ASSERT_TRUE(note.ok() || absl::IsNotFound(note.status())) << note.status();
      if (note.ok() && DecodeHeld(note->data).size() == count) return;
      absl::SleepFor(absl::Milliseconds(1));  // nothing announces it
    }
  }

  std::map<std::string, queue::Message> ReceiveAll(Client& client) {
    std::map<std::string, queue::Message> received;
    const std::vector<queue::Message> messages = client.store->Receive(queue_, {32}).value();
    for (const queue::Message& message : messages) received[message.body] = message;
    return received;
  }
};

TEST_P(DeadHolderTest, WhatADeadHolderHeldIsThereAtOnceAndOnlyWhatItBeganIsCharged) {
  ASSERT_TRUE(store().Put(queue_, Bodies(10)).ok());
  LoseHolder();
  EXPECT_TRUE(ReceiveAll(*client_).empty());
  EXPECT_EQ(Release(*client_), 10) << "the settled one is still noted";
  std::map<std::string, queue::Message> again = ReceiveAll(*client_);
  ASSERT_EQ(again.size(), 9u);
  EXPECT_FALSE(again.contains("body 9")) << "it was settled";
  EXPECT_EQ(again["body 0"].attempts, 1);
  EXPECT_TRUE(again["body 0"].interrupted);
  for (int i = 1; i < 9; ++i) {
    EXPECT_EQ(again[absl::StrCat("body ", i)].attempts, 0) << i;
    EXPECT_FALSE(again[absl::StrCat("body ", i)].interrupted) << i;
  }
}

TEST_P(DeadHolderTest, OneSurvivorOfSeveralGivesBack) {
  Options options = options_;
  options.holder = "another";
  Client another(server_.url(), options);
  ASSERT_TRUE(store().Put(queue_, Bodies(10)).ok());
  LoseHolder();
  EXPECT_EQ(Release(*client_), 10) << "the settled one is still noted";
  EXPECT_EQ(ReceiveAll(*client_).size(), 9u);
  EXPECT_EQ(Release(another), 0);
  EXPECT_TRUE(ReceiveAll(another).empty()) << "the next holder keeps them";
}

TEST_P(DeadHolderTest, GivesBackNothingOfAQueueThatHasTheNameOfADeletedOne) {
  ASSERT_TRUE(store().Put(queue_, Bodies(10)).ok());
  LoseHolder();
  ASSERT_TRUE(store().DeleteQueue(queue_).ok());
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(10)).ok());
  ASSERT_EQ(ReceiveAll(*client_).size(), 10u);
  Options options = options_;
  options.holder = "another";
  Client another(server_.url(), options);
  EXPECT_EQ(Release(another), 0);
  EXPECT_TRUE(ReceiveAll(another).empty()) << "their holder lives";
}

TEST_P(DeadHolderTest, WhatAHolderHoldsThatLivesStaysWithIt) {
  Client slow(server_.url(), options_);
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  ASSERT_EQ(ReceiveAll(slow).size(), 2u);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(store().ReleaseHeldBy("doomed", absl::Seconds(5)).status()));
  EXPECT_TRUE(ReceiveAll(*client_).empty());
}

TEST_P(DeadHolderTest, WhatAHolderGaveBackItselfStaysWithTheNextOne) {
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  nats::JetStream jetstream(client_->connection.get(), options_.timeout);
  {
    Client doomed(server_.url(), options_);
    const std::map<std::string, queue::Message> held = ReceiveAll(doomed);
    ASSERT_EQ(held.size(), 2u);
    queue::UpdateRequest release;
    release.receipt = held.at("body 0").receipt;
    release.attempt_ended = true;
    ASSERT_TRUE(doomed.store->Update(queue_, {release})->front().ok());
    ASSERT_EQ(ReceiveAll(*client_).size(), 1u);
    // The notes of a process that dies right now.
    ASSERT_TRUE(doomed.prompt->Flush(options_.timeout).ok());
    const auto note = jetstream.LastMessage(kHeldStream, HeldSubjectOf("doomed", queue_, 0));
    ASSERT_TRUE(note.ok()) << note.status();
    const std::vector<Delivery> noted = DecodeHeld(note->data);
    ASSERT_EQ(noted.size(), 1u);
    EXPECT_EQ(ReceiptOf(queue_, noted.front()), held.at("body 1").receipt);
  }
  EXPECT_TRUE(absl::IsNotFound(
      jetstream.LastMessage(kHeldStream, HeldSubjectOf("doomed", queue_, 0)).status()))
      << "a holder that ends in order leaves no note";
}

// The first leases may have lapsed: other holders may have the messages by now.
TEST_P(DeadHolderTest, WhatMayHaveLapsedIsLeftToItsLease) {
  ASSERT_TRUE(store().Put(queue_, Bodies(3)).ok());
  LoseHolder();
  while (true) {
    const auto released =
        store().ReleaseHeldBy("doomed", options_.settings.lease * 2 / 3 + absl::Seconds(1));
    if (absl::IsFailedPrecondition(released.status())) continue;
    ASSERT_TRUE(released.ok()) << released.status();
    EXPECT_TRUE(released->empty());
    break;
  }
  EXPECT_TRUE(ReceiveAll(*client_).empty());
}

// The server has lost this connection, and the client has not noticed yet: no question arrives.
class CutConnection final : public nats::Connection {
 public:
  explicit CutConnection(nats::Connection* connection)
      : Connection(connection->prompt()), connection_(connection) {}

  void Mend() { ++reconnects_; }

  absl::Status Publish(const nats::Outgoing& message) override {
    return connection_->Publish(message);
  }
  absl::Status Flush(absl::Duration timeout) override { return connection_->Flush(timeout); }
  absl::StatusOr<std::vector<absl::StatusOr<nats::Incoming>>> RequestAll(
      absl::Span<const nats::Outgoing> requests, absl::Duration timeout) override {
    return connection_->RequestAll(requests, timeout);
  }
  absl::Status RequestMany(const nats::Outgoing& request, absl::Duration timeout,
                           absl::FunctionRef<bool(nats::Incoming)> take) override {
    return connection_->RequestMany(request, timeout, take);
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(const std::string& subject,
                                                          MessageHandler handler) override {
    return connection_->Subscribe(absl::StrCat("cut.", subject), std::move(handler));
  }
  bool connected() const override { return true; }
  int64_t reconnects() const override { return reconnects_; }
  int64_t max_payload() const override { return connection_->max_payload(); }

 private:
  nats::Connection* const connection_;
  int64_t reconnects_ = 0;
};

// The holder was cut off, and comes back after others gave back what it held.
TEST_P(DeadHolderTest, RefusesALateHolderWhoseMessagesWereGivenBack) {
  CutConnection cut(client_->prompt.get());
  options_.prompt = &cut;
  const auto late = OpenJetStreamQueues(client_->connection.get(), options_).value();
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  const std::vector<queue::Message> held = late->Receive(queue_, {2}).value();
  ASSERT_EQ(held.size(), 2u);
  AwaitNoted(2);
  EXPECT_EQ(Release(*client_), 2);
  const std::map<std::string, queue::Message> next = ReceiveAll(*client_);
  ASSERT_EQ(next.size(), 2u);
  cut.Mend();
  const queue::Receipt receipt = held.front().receipt;
  EXPECT_TRUE(absl::IsFailedPrecondition(late->Delete(queue_, {receipt})->front()));
  EXPECT_TRUE(absl::IsFailedPrecondition(late->BeginAttempt(queue_, {receipt})->front().status()));
  queue::UpdateRequest release;
  release.receipt = receipt;
  release.attempt_ended = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(late->Update(queue_, {release})->front().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      late->DeadLetter(queue_, {queue::DeadLetterRequest{receipt, {}}})->front()));
  EXPECT_TRUE(ReceiveAll(*client_).empty()) << "the next holder keeps them";
  for (const auto& [body, message] : next) {
    EXPECT_TRUE(store().Delete(queue_, {message.receipt})->front().ok()) << body;
  }
  // What it receives from now on is its own, also after another loss of the connection.
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  const std::vector<queue::Message> own = late->Receive(queue_, {2}).value();
  ASSERT_EQ(own.size(), 1u);
  cut.Mend();
  EXPECT_TRUE(late->Delete(queue_, {own.front().receipt})->front().ok());
  EXPECT_EQ(store().Stats(queue_)->stored(), 0);
}

TEST(HeldNoteTest, KeepsItsForm) {
  constexpr char kNote[] =
      "$JS.ACK.MUSTER_acme_work.workers.1.7.9.1700000000000000000.3\n"
      "$JS.ACK.MUSTER_acme_work.workers.2.8.10.1700000000000000001.2";
  const std::vector<Delivery> held = DecodeHeld(absl::StrCat(kNote, "\nof a newer muster"));
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held.back().sequence, 8u);
  EXPECT_EQ(held.back().deliveries, 2);
  EXPECT_EQ(EncodeHeld(held), kNote);
}

INSTANTIATE_TEST_SUITE_P(Servers, DeadHolderTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()));

}  // namespace

}  // namespace muster::queue::jetstream
