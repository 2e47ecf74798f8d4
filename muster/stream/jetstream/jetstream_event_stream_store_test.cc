// SPDX-License-Identifier: Apache-2.0

// Runs on each server that NatsServer::Programs names.

#include "muster/stream/jetstream/jetstream_event_stream_store.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/stream/jetstream/consumer_reader.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/nats/nats_server.h"

namespace muster::stream::jetstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kStream[] = "meters";
constexpr absl::Duration kLong = absl::Minutes(1);

std::vector<NewEvent> Events(const std::vector<std::string>& bodies) {
  std::vector<NewEvent> events;
  for (const std::string& body : bodies) events.push_back({.body = body});
  return events;
}

class JetStreamEventStreamStoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<JetStreamEventStreamStore> Open(const Options& options = {}) {
    auto store = JetStreamEventStreamStore::Open(connection_.get(), options);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::unique_ptr<JetStreamEventStreamStore> OpenWith(const std::vector<std::string>& bodies,
                                                      const Options& options = {}) {
    auto store = Open(options);
    EXPECT_TRUE(store->Create(kStream, {.partitions = 2}).ok());
    if (!bodies.empty()) {
      EXPECT_TRUE(store->Append(kStream, 0, Events(bodies)).ok());
    }
    return store;
  }

  // Reads events until there are `count`; errors that say "try again" are tried again.
  static std::vector<std::string> Read(PartitionReader* reader, size_t count) {
    std::vector<std::string> bodies;
    while (bodies.size() < count) {
      const auto events = reader->Next(7, kLong);
      if (absl::IsUnavailable(events.status())) continue;
      EXPECT_TRUE(events.ok()) << events.status();
      if (!events.ok()) break;
      for (const Event& event : *events) bodies.push_back(event.body);
    }
    return bodies;
  }

  // The names of the consumers of partition 0.
  std::vector<std::string> Consumers() {
    const auto answer =
        jetstream_.Call(absl::StrCat("CONSUMER.NAMES.EVENTS_muster_", kStream), nullptr);
    EXPECT_TRUE(answer.ok()) << answer.status();
    std::vector<std::string> names;
    if (!answer.ok() || !answer->at("consumers").is_array()) return names;
    for (const auto& name : answer->at("consumers")) names.push_back(name.get<std::string>());
    return names;
  }

  nats::testing::NatsServer server_{GetParam()};
  std::unique_ptr<nats::Connection> connection_ = nats::Connection::Open(server_.url(), {}).value();
  nats::JetStream jetstream_{connection_.get(), absl::Seconds(5)};
};

INSTANTIATE_TEST_SUITE_P(Servers, JetStreamEventStreamStoreTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()));

TEST_P(JetStreamEventStreamStoreTest, ReadsOnAtItsPlaceAfterARestartOfTheServer) {
  const auto store = OpenWith({"a", "b", "c"});
  const auto reader = store->OpenReader(kStream, 0, 1).value();
  EXPECT_THAT(Read(reader.get(), 3), ElementsAre("a", "b", "c"));
  std::vector<std::string> read;
  std::thread waiting([&] { read = Read(reader.get(), 2); });
  server_.Kill();
  server_.Restart();
  const std::vector<std::string> bodies = {"d", "e"};
  for (const std::string& body : bodies) {
    while (!store->Append(kStream, 0, Events({body})).ok()) {
    }
  }
  waiting.join();
  ASSERT_THAT(read, SizeIs(testing::Ge(2u)));
  EXPECT_EQ(read.front(), "d");
}

TEST_P(JetStreamEventStreamStoreTest, ReadsOnAtItsPlaceWhenItsConsumerIsGone) {
  const auto store = OpenWith({"a", "b"});
  const auto reader = store->OpenReader(kStream, 0, 1).value();
  EXPECT_THAT(Read(reader.get(), 2), ElementsAre("a", "b"));
  ASSERT_THAT(Consumers(), SizeIs(1));
  ASSERT_TRUE(
      jetstream_
          .Call(absl::StrCat("CONSUMER.DELETE.EVENTS_muster_", kStream, ".", Consumers().front()),
                nullptr)
          .ok());
  ASSERT_TRUE(store->Append(kStream, 0, Events({"c"})).ok());
  EXPECT_THAT(Read(reader.get(), 1), ElementsAre("c"));
}

TEST_P(JetStreamEventStreamStoreTest, RenewsItsPullAndKeepsItsConsumer) {
  const auto store = OpenWith({"a"}, {.pull_expires = absl::Milliseconds(900)});
  const auto reader = store->OpenReader(kStream, 0, 1).value();
  EXPECT_THAT(Read(reader.get(), 1), ElementsAre("a"));
  const std::vector<std::string> consumers = Consumers();
  EXPECT_THAT(*reader->Next(1, absl::Milliseconds(2500)), SizeIs(0));  // two pulls expire
  ASSERT_TRUE(store->Append(kStream, 0, Events({"b"})).ok());
  EXPECT_THAT(Read(reader.get(), 1), ElementsAre("b"));
  EXPECT_EQ(Consumers(), consumers);
}

TEST_P(JetStreamEventStreamStoreTest, LeavesNoConsumerBehind) {
  const auto store = OpenWith({"a"});
  auto reader = store->OpenReader(kStream, 0, 1).value();
  EXPECT_THAT(Read(reader.get(), 1), ElementsAre("a"));
  const auto info = jetstream_.Call(
      absl::StrCat("CONSUMER.INFO.EVENTS_muster_", kStream, ".", Consumers().front()), nullptr);
  EXPECT_EQ(info->at("config").at("inactive_threshold"), absl::ToInt64Nanoseconds(kConsumerExpires))
      << "when the reader's process dies";
  reader.reset();
  while (!Consumers().empty()) {  // the server deletes it in its own time
  }
}

TEST_P(JetStreamEventStreamStoreTest, LosesAndReordersNothingWhenTheServerDiesInMidAppend) {
  // An append whose acknowledgement was lost waits for it in vain.
  for (const bool atomic_appends : {false, true}) {
    const auto patient = OpenWith({}, {.atomic_appends = atomic_appends});
    const auto store = Open({.timeout = absl::Milliseconds(500), .atomic_appends = atomic_appends});
    std::atomic<bool> stop = false;
    std::atomic<int> appended = 0;
    std::vector<std::thread> producers;
    for (int p = 0; p < 2; ++p) {
      producers.emplace_back([&, p] {
        for (int i = 0; !stop; ++i) {
          const auto events = Events({absl::StrCat(p, " ", 3 * i), absl::StrCat(p, " ", 3 * i + 1),
                                      absl::StrCat(p, " ", 3 * i + 2)});
          while (!store->Append(kStream, 0, events).ok() && !stop) {
          }
          ++appended;
        }
      });
    }
    for (int round = 1; round <= 3; ++round) {
      for (const int enough = appended + 30; appended < enough;) base::LetOthersRun();
      server_.Kill();
      server_.Restart();
    }
    for (const int enough = appended + 30; appended < enough;) base::LetOthersRun();
    stop = true;
    for (std::thread& producer : producers) producer.join();

    const PartitionExtent extent = patient->Extent(kStream, 0).value();
    const auto reader = patient->OpenReader(kStream, 0, 1).value();
    int next[2] = {0, 0};
    for (const std::string& body : Read(reader.get(), static_cast<size_t>(extent.count()))) {
      const int producer = body[0] - '0', number = std::stoi(body.substr(2));
      // An append whose outcome was unknown comes again from its first event on.
      EXPECT_LE(number, next[producer]) << "an event was lost before " << body;
      EXPECT_GE(number, next[producer] - 3) << body << " comes late";
      next[producer] = std::max(next[producer], number + 1);
    }
    EXPECT_GE(next[0] + next[1], 3 * (appended - 2));
    ASSERT_TRUE(store->Delete(kStream).ok());
  }
}

TEST_P(JetStreamEventStreamStoreTest, AppendsAChainBehindEventsOfOthers) {
  // Without atomic batches, two processes' appends meet in one partition.
  const auto one = OpenWith({}), other = Open();
  const auto produce = [](EventStreamStore* store, const std::string& name) {
    for (int i = 0; i < 20; ++i) {
      std::vector<std::string> bodies;
      for (int n = 0; n < 20; ++n) bodies.push_back(absl::StrCat(name, " ", 20 * i + n));
      const auto offset = store->Append(kStream, 0, Events(bodies));
      EXPECT_TRUE(offset.ok()) << offset.status();
    }
  };
  std::thread first([&] { produce(one.get(), "0"); });
  produce(other.get(), "1");
  first.join();
  int next[2] = {0, 0};
  for (const std::string& body : Read(one->OpenReader(kStream, 0, 1).value().get(), 800)) {
    EXPECT_EQ(std::stoi(body.substr(2)), next[body[0] - '0']++);
  }
}

TEST_P(JetStreamEventStreamStoreTest, NamesAMessageThatIsNoEvent) {
  const auto store = OpenWith({"a"});
  ASSERT_TRUE(
      jetstream_.Publish(nats::Outgoing{.subject = "muster.events.muster.meters.0", .data = ""})
          .ok());
  const auto reader = store->OpenReader(kStream, 0, 2).value();
  const absl::Status status = reader->Next(1, kLong).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'meters' partition 0 event 2"));
}

TEST_P(JetStreamEventStreamStoreTest, NamesAnEventThatIsLost) {
  const auto store = OpenWith({"a", "b", "c"});
  ASSERT_TRUE(jetstream_.DeleteMessage("EVENTS_muster_meters", 2).ok());
  const auto reader = store->OpenReader(kStream, 0, 1).value();
  EXPECT_THAT(Read(reader.get(), 1), ElementsAre("a"));
  const absl::Status status = reader->Next(1, kLong).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("event 2 is lost"));
  EXPECT_THAT(Read(store->OpenReader(kStream, 0, 3).value().get(), 1), ElementsAre("c"));
}

TEST_P(JetStreamEventStreamStoreTest, LetsOneOfManyMakersWin) {
  std::vector<std::thread> makers;
  std::atomic<int> made = 0, refused = 0;
  for (int i = 0; i < 6; ++i) {
    makers.emplace_back([&, i] {
      const auto connection = nats::Connection::Open(server_.url(), {}).value();
      const auto store = JetStreamEventStreamStore::Open(connection.get()).value();
      const absl::Status status = store->Create(kStream, {.partitions = i % 2 + 2});
      if (status.ok()) ++made;
      if (absl::IsAlreadyExists(status)) ++refused;
    });
  }
  for (std::thread& maker : makers) maker.join();
  EXPECT_EQ(made, 3);
  EXPECT_EQ(refused, 3);
  const auto store = Open();
  const int partitions = store->Describe(kStream)->partitions;
  for (int i = 0; i < partitions; ++i) EXPECT_EQ(*store->Append(kStream, i, Events({"a"})), 1);
  EXPECT_THAT(*jetstream_.StreamNames("muster.events.>"), SizeIs(static_cast<size_t>(partitions)))
      << "those that lost removed what they had made";
}

TEST_P(JetStreamEventStreamStoreTest, FollowsAStreamThatAnotherProcessMadeAnew) {
  const auto store = OpenWith({"old"}), other = Open();
  ASSERT_TRUE(store->Append(kStream, 1, Events({"old"})).ok());
  ASSERT_TRUE(other->Delete(kStream).ok());
  EXPECT_EQ(store->Append(kStream, 1, Events({"a"})).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(other->Create(kStream, {.partitions = 3}).ok());
  EXPECT_EQ(*store->Append(kStream, 1, Events({"new"})), 1);
  EXPECT_EQ(*store->Append(kStream, 2, Events({"new"})), 1);
}

TEST_P(JetStreamEventStreamStoreTest, KeepsBucketsApart) {
  const auto one = Open(), other = Open({.bucket = "other"});
  ASSERT_TRUE(one->Create("a", {.partitions = 1}).ok());
  ASSERT_TRUE(other->Create("b", {.partitions = 1}).ok());
  EXPECT_THAT(*one->List(), ElementsAre("a"));
  EXPECT_THAT(*other->List(), ElementsAre("b"));
  EXPECT_EQ(JetStreamEventStreamStore::Open(connection_.get(), {.bucket = "a.b"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// An operator may describe a stream, and muster's own words are gone.
TEST_P(JetStreamEventStreamStoreTest, KeepsAStreamThatAnOperatorHasDescribed) {
  OpenWith({"a"});
  auto config = jetstream_.StreamConfig("EVENTS_muster_meters");
  ASSERT_TRUE(config.ok()) << config.status();
  (*config)["description"] = "of the meters' team";
  ASSERT_TRUE(jetstream_.Call("STREAM.UPDATE.EVENTS_muster_meters", *config).ok());

  const auto store = OpenWith({"b"});
  EXPECT_EQ(store->Describe(kStream)->partitions, 2);
  EXPECT_EQ(*store->Append(kStream, 1, Events({"c"})), 1);
  EXPECT_EQ(store->Extent(kStream, 0)->next, 3);
  EXPECT_TRUE(store->Delete(kStream).ok());
  EXPECT_THAT(*jetstream_.StreamNames("muster.events.>"), IsEmpty());
}

TEST_P(JetStreamEventStreamStoreTest, RefusesAStreamOfAnotherProgram) {
  ASSERT_TRUE(
      jetstream_.EnsureStream({{"name", "EVENTS_muster_meters"}, {"subjects", {"their.own"}}})
          .ok());
  EXPECT_EQ(Open()->Create(kStream, {}).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace muster::stream::jetstream
