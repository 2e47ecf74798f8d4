// SPDX-License-Identifier: Apache-2.0

// The fixture of the JetStream tests: a server of their own, and the clients of several processes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/queue_store.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::queue::jetstream {

// The connections of one process to the server.
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

// Queue acme/work, on each server that NatsServer::Programs names (jetstream_queue_store_test.cc
// says so, for the tests of all files).
class JetStreamQueueStoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr absl::Duration kShortLease = absl::Seconds(1);
  // Short: many tests put a stream out of place, and no process makes it then.
  static constexpr absl::Duration kMakerGrace = absl::Milliseconds(300);

  JetStreamQueueStoreTest() {
    options_.settings.lease = absl::Minutes(10);  // no test lasts as long, on a busy machine either
    options_.timeout = absl::Seconds(10);
    options_.maker_grace = kMakerGrace;
    client_ = std::make_unique<Client>(server_.url(), options_);
    EXPECT_TRUE(store().CreateQueue(queue_, {}).ok());
  }

  queue::QueueStore& store() { return *client_->store; }

  // For a test that waits for leases to end.
  void ShortenLeases() { EXPECT_TRUE(queue::SetVisibility(&store(), queue_, kShortLease).ok()); }

  // Waits until short leases have ended. On a busy machine, one time in ten, nats-server 2.9
  // reports a redelivery as the first delivery if a client pulls at the moment at which a lease
  // ends.
  static void OutlastLeases() { absl::SleepFor(kShortLease * 1.5); }

  static std::vector<queue::NewMessage> Bodies(int count, const std::string& id_prefix = "") {
    std::vector<queue::NewMessage> messages;
    for (int i = 0; i < count; ++i) {
      messages.emplace_back().body = absl::StrCat("body ", i);
      if (!id_prefix.empty()) messages.back().dedup_id = absl::StrCat(id_prefix, i);
    }
    return messages;
  }

  // Retries while the server is away.
  template <typename Call>
  auto Insist(Call call) {
    auto result = call();
    for (int i = 0; i < 100 && absl::IsUnavailable(result.status()); ++i) result = call();
    return result;
  }

  // Receives and deletes until the queue is empty.
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

}  // namespace muster::queue::jetstream
