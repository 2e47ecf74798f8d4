// SPDX-License-Identifier: Apache-2.0

// Puts of many messages on a server that syncs each write.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"

namespace muster::queue::jetstream {
namespace {

class AtomicPutTest : public JetStreamQueueStoreTest {
 protected:
  void SetUp() override {
    if (jetstream_.ApiLevel().value() < nats::kAtomicApiLevel) {
      GTEST_SKIP() << "the server is older than 2.12";
    }
    ASSERT_TRUE(syncing_.store->CreateQueue(queue_, {}).ok());
  }

  static Options Syncing(Options options) {
    options.ack_survives = queue::Survives::kPower;
    return options;
  }

  // Whether the message at `sequence` came in an atomic batch.
  bool CameInABatch(uint64_t sequence) {
    const auto message = jetstream_.GetMessage(StreamOf(queue_), sequence);
    EXPECT_TRUE(message.ok()) << message.status();
    for (const nats::Header& header : message->headers) {
      if (header.name == "Nats-Batch-Id") return true;
    }
    return false;
  }

  // As an older muster leaves the stream, which does not know of atomic batches.
  void ForbidBatches() {
    ASSERT_TRUE(jetstream_
                    .Call(absl::StrCat("STREAM.UPDATE.", StreamOf(queue_)),
                          StreamSettings(queue_, Settings()))
                    .ok());
  }

  Client syncing_{server_.url(), Syncing(options_)};
  nats::JetStream jetstream_{client_->connection.get(), absl::Seconds(10)};
};

TEST_P(AtomicPutTest, StoresTheMessagesOfAWindowTogether) {
  const auto put = syncing_.store->Put(queue_, Bodies(100, "id"));
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_EQ(put->size(), 100u);
  for (size_t i = 0; i < put->size(); ++i) {
    EXPECT_EQ((*put)[i].position, i + 1);
    EXPECT_FALSE((*put)[i].duplicate);
  }
  EXPECT_TRUE(CameInABatch(1));
  EXPECT_TRUE(CameInABatch(100));
  EXPECT_TRUE(syncing_.store->Delete(queue_, {put->front().receipt})->front().ok());
  EXPECT_EQ(Drain().size(), 99u);
}

TEST_P(AtomicPutTest, StoresFewMessagesOneByOne) {
  ASSERT_TRUE(syncing_.store->Put(queue_, Bodies(3, "id")).ok());
  EXPECT_FALSE(CameInABatch(1));
}

// A server without syncs is faster so.
TEST_P(AtomicPutTest, StoresThemOneByOneOnAServerThatDoesNotSync) {
  ASSERT_TRUE(store().Put(queue_, Bodies(100, "id")).ok());
  EXPECT_FALSE(CameInABatch(1));
}

TEST_P(AtomicPutTest, FindsTheMessagesThatAreThereAlready) {
  ASSERT_TRUE(syncing_.store->Put(queue_, Bodies(40, "id")).ok());
  const auto again = syncing_.store->Put(queue_, Bodies(60, "id"));
  ASSERT_TRUE(again.ok()) << again.status();
  for (size_t i = 0; i < again->size(); ++i) {
    EXPECT_EQ((*again)[i].position, i + 1);
    EXPECT_EQ((*again)[i].duplicate, i < 40);
  }
  EXPECT_EQ(Drain().size(), 60u);
}

TEST_P(AtomicPutTest, StoresThemOneByOneWhereAnotherProcessForbidsIt) {
  ASSERT_TRUE(syncing_.store->Put(queue_, Bodies(20, "before")).ok());
  ForbidBatches();
  const auto put = syncing_.store->Put(queue_, Bodies(20, "after"));
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_FALSE(CameInABatch(21));
  EXPECT_EQ(Drain().size(), 40u);
}

TEST_P(AtomicPutTest, AllowsItOnAStreamOfAnOlderRelease) {
  ForbidBatches();
  const Client next(server_.url(), Syncing(options_));
  ASSERT_TRUE(next.store->CreateQueue(queue_, {}).ok());
  ASSERT_TRUE(next.store->Put(queue_, Bodies(20, "id")).ok());
  EXPECT_TRUE(CameInABatch(1));
}

TEST_P(AtomicPutTest, PutsOnAfterTheServerWasAway) {
  ASSERT_TRUE(syncing_.store->Put(queue_, Bodies(20, "before")).ok());
  server_.Kill();
  server_.Restart();
  const auto put = Insist([&] { return syncing_.store->Put(queue_, Bodies(20, "after")); });
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(Drain().size(), 40u);
}

INSTANTIATE_TEST_SUITE_P(Servers, AtomicPutTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::queue::jetstream
