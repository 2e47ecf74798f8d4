// SPDX-License-Identifier: Apache-2.0

// Runs on each server that NatsServer::Programs names.
#include "muster/nats/jetstream.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/nats/nats_server.h"

namespace muster::nats {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class JetStreamTest : public ::testing::TestWithParam<std::string> {
 protected:
  static json Config() {
    return {{"name", "work"},        {"subjects", {"work.*"}},           {"storage", "file"},
            {"retention", "limits"}, {"duplicate_window", 600000000000}, {"num_replicas", 1}};
  }

  testing::NatsServer server_{GetParam()};
  const std::unique_ptr<Connection> connection_ = Connection::Open(server_.url(), {}).value();
  JetStream jetstream_{connection_.get(), absl::Seconds(10)};
};

TEST_P(JetStreamTest, MakesAStreamOnceAndChangesItLater) {
  EXPECT_TRUE(absl::IsNotFound(jetstream_.GetStream("work").status()));
  EXPECT_TRUE(jetstream_.EnsureStream(Config()).ok());
  EXPECT_TRUE(jetstream_.EnsureStream(Config()).ok());
  json config = Config();
  config["max_msgs"] = 7;
  const absl::Status changed = jetstream_.EnsureStream(config);
  EXPECT_TRUE(changed.ok()) << changed;
  EXPECT_EQ((*jetstream_.StreamConfig("work"))["max_msgs"], 7);
  EXPECT_THAT(*jetstream_.StreamNames("work.*"), ElementsAre("work"));
  EXPECT_TRUE(jetstream_.DeleteStream("work").ok());
  EXPECT_TRUE(absl::IsNotFound(jetstream_.DeleteStream("work")));
}

// An administrator bounds a stream, describes it, or has its messages published again: the next
// process that makes sure of it must not undo that.
TEST_P(JetStreamTest, KeepsTheSettingsOfAStreamThatItDoesNotAskFor) {
  json theirs = Config();
  theirs["description"] = "of the billing team";
  theirs["max_bytes"] = 1 << 20;
  theirs["republish"] = {{"src", "work.a"}, {"dest", "copy.a"}};
  ASSERT_TRUE(jetstream_.EnsureStream(theirs).ok());
  json config = Config();
  for (const bool changed : {false, true}) {
    if (changed) config["max_msgs"] = 7;
    const absl::Status ensured = jetstream_.EnsureStream(config);
    ASSERT_TRUE(ensured.ok()) << ensured;
    json is = jetstream_.StreamConfig("work").value();
    EXPECT_EQ(is["description"], "of the billing team");
    EXPECT_EQ(is["max_bytes"], 1 << 20);
    EXPECT_EQ(is["republish"]["dest"], "copy.a");
    EXPECT_EQ(is["max_msgs"], changed ? 7 : -1);
  }
}

// The server lets nobody take this setting back. What is set is no mismatch when it was not asked
// for.
TEST_P(JetStreamTest, OpensAStreamWhoseMessagesMayHaveTimesToLive) {
  if (jetstream_.ApiLevel().value() == 0) GTEST_SKIP() << "the server is older than 2.11";
  json theirs = Config();
  theirs["allow_msg_ttl"] = true;
  ASSERT_TRUE(jetstream_.EnsureStream(theirs).ok());
  json config = Config();
  for (const int most : {-1, 7}) {
    config["max_msgs"] = most;
    const absl::Status ensured = jetstream_.EnsureStream(config);
    EXPECT_TRUE(ensured.ok()) << ensured;
  }
  EXPECT_EQ((*jetstream_.StreamConfig("work"))["allow_msg_ttl"], true);
}

TEST_P(JetStreamTest, KeepsTheSettingsOfAConsumerThatItDoesNotAskFor) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  json config = {{"durable_name", "workers"}, {"ack_policy", "explicit"}};
  json theirs = config;
  theirs["description"] = "of the billing team";
  theirs["max_batch"] = 5;
  ASSERT_TRUE(jetstream_.EnsureConsumer("work", theirs).ok());
  for (const bool changed : {false, true}) {
    if (changed) config["ack_wait"] = 5'000'000'000;
    const absl::Status ensured = jetstream_.EnsureConsumer("work", config);
    ASSERT_TRUE(ensured.ok()) << ensured;
    json is = (*jetstream_.Call("CONSUMER.INFO.work.workers", nullptr))["config"];
    EXPECT_EQ(is["description"], "of the billing team");
    EXPECT_EQ(is["max_batch"], 5);
    EXPECT_EQ(is["ack_wait"], changed ? 5'000'000'000 : 30'000'000'000);
  }
}

TEST_P(JetStreamTest, ListsAllStreamsPageByPage) {
  EXPECT_TRUE(jetstream_.ListStreams(0)->streams.empty());
  json config = Config();
  config["max_bytes"] = 1 << 20;
  ASSERT_TRUE(jetstream_.EnsureStream(config).ok());
  ASSERT_TRUE(
      jetstream_.EnsureConsumer("work", {{"durable_name", "c"}, {"ack_policy", "explicit"}}).ok());
  ASSERT_TRUE(jetstream_.Publish({.subject = "work.a", .data = "twelve bytes"}).ok());
  json other = Config();
  other["name"] = "other";
  other["subjects"] = {"other"};
  ASSERT_TRUE(jetstream_.EnsureStream(other).ok());
  const StreamPage page = jetstream_.ListStreams(0).value();
  ASSERT_EQ(page.total, 2u);
  ASSERT_THAT(page.streams, SizeIs(2));
  const ListedStream& work = page.streams[page.streams[0].name == "work" ? 0 : 1];
  EXPECT_EQ(work.name, "work");
  EXPECT_EQ(work.state.messages, 1u);
  EXPECT_GE(work.state.bytes, 12u);
  EXPECT_EQ(work.max_bytes, 1 << 20);
  EXPECT_EQ(work.consumers, 1);
  EXPECT_GT(work.state.first_time, absl::Now() - absl::Minutes(10));
  EXPECT_THAT(jetstream_.ListStreams(1)->streams, SizeIs(1));
  EXPECT_TRUE(jetstream_.ListStreams(2)->streams.empty());
}

TEST_P(JetStreamTest, TellsWhatTheAccountStoresOnDisk) {
  EXPECT_EQ(jetstream_.GetStorageUse()->bytes, 0u);
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  ASSERT_TRUE(jetstream_.Publish({.subject = "work.a", .data = "twelve bytes"}).ok());
  EXPECT_GE(jetstream_.GetStorageUse()->bytes, 12u);
  EXPECT_EQ(jetstream_.GetStorageUse()->max_bytes, 0);
}

TEST_P(JetStreamTest, RefusesAStreamThatCannotBeAsItShould) {
  json config = Config();
  config["storage"] = "memory";
  ASSERT_TRUE(jetstream_.EnsureStream(config).ok());
  const absl::Status status = jetstream_.EnsureStream(Config());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("stream work"));
  EXPECT_THAT(status.message(), HasSubstr("delete the stream"));
  EXPECT_EQ(base::MismatchOf(status),
            (base::Mismatch{"work", "storage", "\"memory\"", "\"file\""}));
}

TEST_P(JetStreamTest, SaysWhichOtherStreamHasTheSubjects) {
  json other = Config();
  other["name"] = "mine";
  other["subjects"] = {"work.>"};
  ASSERT_TRUE(jetstream_.EnsureStream(other).ok());
  const absl::Status status = jetstream_.EnsureStream(Config());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(base::MismatchOf(status),
            (base::Mismatch{"work", "subjects", "of stream mine", "[\"work.*\"]"}));
  ASSERT_TRUE(jetstream_.DeleteStream("mine").ok());
  EXPECT_TRUE(jetstream_.EnsureStream(Config()).ok());
}

TEST_P(JetStreamTest, RefusesAConsumerThatCannotBeAsItShould) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  json config = {{"durable_name", "workers"}, {"ack_policy", "none"}};
  ASSERT_TRUE(jetstream_.EnsureConsumer("work", config).ok());
  config["ack_policy"] = "explicit";
  const absl::Status status = jetstream_.EnsureConsumer("work", config);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(base::MismatchOf(status), (base::Mismatch{"consumer workers of stream work",
                                                      "ack_policy", "\"none\"", "\"explicit\""}));
}

TEST_P(JetStreamTest, SaysThatAStreamIsAMirrorAndLeavesItOne) {
  json origin = Config();
  origin["name"] = "origin";
  ASSERT_TRUE(jetstream_.EnsureStream(origin).ok());
  ASSERT_TRUE(
      jetstream_.Call("STREAM.CREATE.work", {{"name", "work"}, {"mirror", {{"name", "origin"}}}})
          .ok());
  json config = Config();
  config["subjects"] = {"other.*"};
  const absl::Status status = jetstream_.EnsureStream(config);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("stream work is a mirror of stream origin"));
  EXPECT_EQ(base::MismatchOf(status),
            (base::Mismatch{"work", "mirror", "of stream origin", "not set"}));
  EXPECT_EQ((*jetstream_.StreamConfig("work"))["mirror"]["name"], "origin");
}

// A work queue has one consumer for all of its messages. With 2.9, that of a mirror counts, too.
TEST_P(JetStreamTest, SaysWhatElseReadsAWorkQueue) {
  json queue = Config();
  queue["retention"] = "workqueue";
  ASSERT_TRUE(jetstream_.EnsureStream(queue).ok());
  json config = {{"durable_name", "billing"}, {"ack_policy", "explicit"}};
  ASSERT_TRUE(jetstream_.EnsureConsumer("work", config).ok());
  config["durable_name"] = "workers";
  const absl::Status status = jetstream_.EnsureConsumer("work", config);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(base::MismatchOf(status), (base::Mismatch{"consumer workers of stream work", "readers",
                                                      "consumer billing", "none"}));
}

TEST_P(JetStreamTest, NamesTheMirrorOfAWorkQueueWhereThatTakesThePlaceOfAConsumer) {
  json queue = Config();
  queue["retention"] = "workqueue";
  ASSERT_TRUE(jetstream_.EnsureStream(queue).ok());
  ASSERT_TRUE(
      jetstream_.Call("STREAM.CREATE.copy", {{"name", "copy"}, {"mirror", {{"name", "work"}}}})
          .ok());
  ASSERT_TRUE(jetstream_.Publish({.subject = "work.a", .data = "x"}).ok());
  while (jetstream_.GetStream("copy")->messages == 0) absl::SleepFor(absl::Milliseconds(5));
  const absl::Status status =
      jetstream_.EnsureConsumer("work", {{"durable_name", "workers"}, {"ack_policy", "explicit"}});
  if (status.ok()) return;  // a later server
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("stream copy, which copies it"));
}

TEST_P(JetStreamTest, NamesWhatTheServerDidNotAccept) {
  json config = Config();
  config["does_not_exist"] = true;
  const absl::Status status = jetstream_.EnsureStream(config);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("does_not_exist"));
  EXPECT_TRUE(jetstream_.EnsureStream(Config()).ok());
}

TEST_P(JetStreamTest, AcknowledgesEachMessageAndKnowsDuplicates) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  std::vector<Outgoing> messages;
  for (const char* id : {"1", "2", "1"}) {
    messages.push_back({.subject = "work.a", .headers = {{"Nats-Msg-Id", id}}, .data = "x"});
  }
  const auto acks = jetstream_.Publish(messages);
  ASSERT_TRUE(acks.ok()) << acks.status();
  EXPECT_EQ((*acks)[0]->sequence, 1u);
  EXPECT_FALSE((*acks)[1]->duplicate);
  EXPECT_EQ((*acks)[2]->sequence, 1u);
  EXPECT_TRUE((*acks)[2]->duplicate);
  EXPECT_EQ(jetstream_.GetStream("work")->messages, 2u);
}

TEST_P(JetStreamTest, SaysWhenNoStreamTakesAMessage) {
  EXPECT_TRUE(absl::IsUnavailable(jetstream_.Publish({.subject = "nowhere"}).status()));
}

TEST_P(JetStreamTest, TellsAWrongLastSequenceApart) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  const Outgoing first{
      .subject = "work.a", .headers = {{kExpectedLastSubjectSequence, "0"}}, .data = "x"};
  EXPECT_TRUE(jetstream_.Publish(first).ok());
  const absl::Status second = jetstream_.Publish(first).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_EQ(ErrorCodeOf(second), kWrongLastSequence);
  EXPECT_EQ(ErrorCodeOf(absl::InternalError("x")), 0);
}

TEST_P(JetStreamTest, TellsAMessageThatIsNotThereFromAStreamThatIsNot) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  const absl::Status no_message = jetstream_.LastMessage("work", "work.a").status();
  EXPECT_TRUE(absl::IsNotFound(no_message)) << no_message;
  EXPECT_EQ(ErrorCodeOf(no_message), kNoMessageFound);
  const absl::Status no_stream = jetstream_.LastMessage("play", "work.a").status();
  EXPECT_TRUE(absl::IsNotFound(no_stream)) << no_stream;
  EXPECT_NE(ErrorCodeOf(no_stream), kNoMessageFound);
}

TEST_P(JetStreamTest, PurgesUpToASequence) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  for (const char* subject : {"work.a", "work.b", "work.a", "work.a"}) {
    ASSERT_TRUE(jetstream_.Publish({.subject = subject, .data = "x"}).ok());
  }
  EXPECT_EQ(*jetstream_.Purge("work", "work.a", 3), 2);
  EXPECT_EQ(*jetstream_.Purge("work", "work.a", 3), 0);
  const std::vector<std::string> subjects = {"work.none", "work.a"};
  const auto last = jetstream_.LastMessages("work", subjects).value();
  ASSERT_EQ(last.size(), 2u);
  EXPECT_FALSE(last[0].has_value());
  EXPECT_EQ(last[1]->sequence, 4u);
  EXPECT_FALSE(jetstream_.LastMessages("play", subjects)->at(1).has_value()) << "no such stream";
  EXPECT_EQ(jetstream_.LastMessage("work", "work.a")->sequence, 4u);
  EXPECT_EQ(jetstream_.LastMessage("work", "work.b")->sequence, 2u);
  EXPECT_EQ(*jetstream_.Purge("work", "", 2), 1);
  EXPECT_EQ(jetstream_.GetStream("work")->messages, 1u);
}

TEST_P(JetStreamTest, CallsAFullStreamExhausted) {
  json config = Config();
  config["max_msgs"] = 1;
  config["discard"] = "new";
  ASSERT_TRUE(jetstream_.EnsureStream(config).ok());
  EXPECT_TRUE(jetstream_.Publish({.subject = "work.a", .data = "x"}).ok());
  const absl::Status full = jetstream_.Publish({.subject = "work.a", .data = "x"}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
}

TEST_P(JetStreamTest, NamesTheSubjectsThatHaveMessages) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  EXPECT_THAT(*jetstream_.Subjects("work", "work.*"), ElementsAre());
  for (const char* subject : {"work.b", "work.a", "work.a"}) {
    ASSERT_TRUE(jetstream_.Publish({.subject = subject, .data = "x"}).ok());
  }
  EXPECT_THAT(*jetstream_.Subjects("work", "work.*"), ElementsAre("work.a", "work.b"));
  EXPECT_THAT(*jetstream_.Subjects("work", "work.b"), ElementsAre("work.b"));
  EXPECT_TRUE(absl::IsNotFound(jetstream_.Subjects("play", ">").status()));
}

TEST_P(JetStreamTest, ReadsDeletesAndPurgesMessages) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  const std::string bytes("\0\xff\r\n", 4);
  for (const char* subject : {"work.a", "work.b", "work.a", "work.b"}) {
    ASSERT_TRUE(
        jetstream_.Publish({.subject = subject, .headers = {{"Why", "a: b"}}, .data = bytes}).ok());
  }
  const auto second = jetstream_.GetMessage("work", 2);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->subject, "work.b");
  EXPECT_EQ(second->data, bytes);
  ASSERT_THAT(second->headers, SizeIs(1));
  EXPECT_EQ(second->headers[0].name + "=" + second->headers[0].value, "Why=a: b");
  EXPECT_GT(second->time, absl::Now() - absl::Minutes(5));
  EXPECT_EQ(jetstream_.LastMessage("work", "work.a")->sequence, 3u);
  EXPECT_EQ(jetstream_.NextMessage("work", 2, "work.a")->sequence, 3u);
  EXPECT_TRUE(jetstream_.DeleteMessage("work", 3).ok());
  EXPECT_TRUE(absl::IsNotFound(jetstream_.GetMessage("work", 3).status()));
  EXPECT_EQ(*jetstream_.Purge("work", "work.b"), 2);
  EXPECT_EQ(*jetstream_.Purge("work"), 1);
}

// The server tells it in two ways: by whether the message was between others or at an end.
TEST_P(JetStreamTest, SaysOfAMessageToDeleteThatItIsNotThere) {
  ASSERT_TRUE(jetstream_.EnsureStream(Config()).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(jetstream_.Publish({.subject = "work.a", .data = "x"}).ok());
  }
  for (const uint64_t sequence : {2, 1, 3}) {
    EXPECT_TRUE(jetstream_.DeleteMessage("work", sequence).ok());
    const absl::Status again = jetstream_.DeleteMessage("work", sequence);
    EXPECT_TRUE(absl::IsNotFound(again)) << sequence << ": " << again;
    EXPECT_FALSE(IsNoStream(again)) << again;
  }
  EXPECT_TRUE(absl::IsNotFound(jetstream_.DeleteMessage("work", 9)));
  EXPECT_TRUE(IsNoStream(jetstream_.DeleteMessage("play", 1)));
}

INSTANTIATE_TEST_SUITE_P(Servers, JetStreamTest,
                         ::testing::ValuesIn(testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

class AtomicPublishTest : public JetStreamTest {
 protected:
  static std::vector<Outgoing> Messages(int count) {
    std::vector<Outgoing> messages;
    for (int i = 0; i < count; ++i) {
      messages.push_back(
          {.subject = "work.a", .headers = {{"Nats-Msg-Id", absl::StrCat("id-", i)}}, .data = "x"});
    }
    return messages;
  }

  bool IsKnown() { return jetstream_.ApiLevel().value() >= kAtomicApiLevel; }

  void MakeStream(bool allow_atomic) {
    json config = Config();
    if (allow_atomic) config[kAllowAtomic] = true;
    ASSERT_TRUE(jetstream_.EnsureStream(config).ok());
  }
};

TEST_P(AtomicPublishTest, StoresAllMessagesWithNeighbouringSequences) {
  if (!IsKnown()) GTEST_SKIP() << "the server is older than 2.12";
  MakeStream(true);
  ASSERT_TRUE(jetstream_.Publish({.subject = "work.a", .data = "before"}).ok());
  const auto acks = jetstream_.PublishAtomically(Messages(kMaxAtomicMessages));
  ASSERT_TRUE(acks.ok()) << acks.status();
  ASSERT_EQ(acks->size(), kMaxAtomicMessages);
  EXPECT_EQ(acks->front().sequence, 2u);
  EXPECT_EQ(acks->back().sequence, 1 + kMaxAtomicMessages);
  EXPECT_EQ(jetstream_.GetStream("work")->messages, 1 + kMaxAtomicMessages);
  const auto alone = jetstream_.PublishAtomically(std::vector<Outgoing>{{.subject = "work.a"}});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->front().sequence, 2 + kMaxAtomicMessages);
}

TEST_P(AtomicPublishTest, StoresNoneIfOneIsThereAlready) {
  if (!IsKnown()) GTEST_SKIP() << "the server is older than 2.12";
  MakeStream(true);
  ASSERT_TRUE(jetstream_.Publish(Messages(3).back()).ok());
  const absl::Status refused = jetstream_.PublishAtomically(Messages(20)).status();
  EXPECT_TRUE(IsAtomicRefusal(refused)) << refused;
  EXPECT_EQ(jetstream_.GetStream("work")->messages, 1u);
}

TEST_P(AtomicPublishTest, StoresNoneIfTheStreamDoesNotAllowIt) {
  if (!IsKnown()) GTEST_SKIP() << "the server is older than 2.12";
  MakeStream(false);
  const absl::Status refused = jetstream_.PublishAtomically(Messages(20)).status();
  EXPECT_TRUE(IsAtomicRefusal(refused)) << refused;
  EXPECT_EQ(ErrorCodeOf(refused), kAtomicNotAllowed);
  EXPECT_EQ(jetstream_.GetStream("work")->messages, 0u);
}

// The caller cannot know then which messages are stored.
TEST_P(AtomicPublishTest, IsUnavailableFromAServerThatStoresThemOneByOne) {
  if (IsKnown()) GTEST_SKIP() << "the server is 2.12 or later";
  MakeStream(false);
  const absl::Status unknown = jetstream_.PublishAtomically(Messages(20)).status();
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << unknown;
  EXPECT_FALSE(IsAtomicRefusal(unknown));
}

INSTANTIATE_TEST_SUITE_P(Servers, AtomicPublishTest,
                         ::testing::ValuesIn(testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

// A cluster that forms has a leader before it has all of its servers.
TEST(JetStreamClusterTest, CallsAClusterWithoutEnoughServersUnavailable) {
  const testing::NatsServer server(testing::NatsServer::Programs().front(), "",
                                   testing::NatsServer::Persistence::kNone);
  const std::unique_ptr<Connection> api = Connection::Open(server.url(), {}).value();
  const std::unique_ptr<Connection::Subscription> answers =
      api->Subscribe(
             "$JS.API.>",
             [&](const Incoming& request) {
               EXPECT_TRUE(api->Publish({.subject = request.reply,
                                         .data = R"({"error": {"code": 400, "err_code": 10005,
                                             "description": "no suitable peers for placement"}})"})
                               .ok());
             })
          .value();
  ASSERT_TRUE(api->Flush(absl::Seconds(10)).ok());
  const std::unique_ptr<Connection> connection = Connection::Open(server.url(), {}).value();
  JetStream jetstream(connection.get(), absl::Seconds(10));
  const absl::Status status = jetstream.Call("STREAM.CREATE.work", json::object()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("no suitable peers"));
}

}  // namespace
}  // namespace muster::nats
