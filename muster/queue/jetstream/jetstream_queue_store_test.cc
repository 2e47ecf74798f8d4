// SPDX-License-Identifier: Apache-2.0

// Tests beyond the conformance suite, for an engine whose messages lie on a server. They run on
// each server that NatsServer::Programs names.
#include "muster/queue/jetstream/jetstream_queue_store.h"

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/attempt_log.h"
#include "muster/queue/jetstream/dead_letter_store.h"
#include "muster/queue/jetstream/held_log.h"
#include "muster/queue/jetstream/queue_registry.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/waiting_pulls.h"
#include "muster/queue/queue_store.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/nats/nats_server.h"
#include "tests/fakes/queue/jetstream/jetstream_fixture.h"
#include "tests/fakes/queue/jetstream/tapped_connection.h"

namespace muster::queue::jetstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST_P(JetStreamQueueStoreTest, PutsMoreThanOneWindowInOneCall) {
  const auto put = store().Put(queue_, Bodies(1000, "id"));
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_EQ(put->size(), 1000u);
  const std::vector<std::string> drained = Drain();  // one of them twice, if its lease lapses
  EXPECT_EQ(std::set<std::string>(drained.begin(), drained.end()).size(), 1000u);
}

// Servers trim header values and fold their lines.
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

// A queue that is made again gives the sequences again. A worker that was late with a message of
// the one before deleted a message of the new one, which nobody had received.
TEST_P(JetStreamQueueStoreTest, KeepsTheMessagesOfANewQueueFromReceiptsOfTheOneBefore) {
  const auto put = store().Put(queue_, Bodies(1));
  ASSERT_TRUE(put.ok()) << put.status();
  const queue::Receipt got = store().Receive(queue_, {1})->front().receipt;
  ASSERT_TRUE(store().DeleteQueue(queue_).ok());
  ASSERT_TRUE(store().CreateQueue(queue_, {}).ok());
  queue::NewMessage other;
  other.body = "other";
  ASSERT_TRUE(store().Put(queue_, {other}).ok());
  EXPECT_TRUE(absl::IsNotFound(store().Delete(queue_, {put->front().receipt})->front()));
  EXPECT_TRUE(absl::IsNotFound(store().Delete(queue_, {got})->front()));
  queue::UpdateRequest given_back;
  given_back.receipt = got;
  EXPECT_TRUE(absl::IsNotFound(store().Update(queue_, {given_back})->front().status()));
  EXPECT_THAT(Drain(), ElementsAre("other"));
}

// The server acknowledges what is said of any message. A holder that asked for more time went on
// with a message that was gone.
TEST_P(JetStreamQueueStoreTest, SaysOfAnUpdateThatItsMessageIsGone) {
  ASSERT_TRUE(store().Put(queue_, Bodies(2)).ok());
  const std::vector<queue::Message> got = *store().Receive(queue_, {2});
  ASSERT_EQ(got.size(), 2u);
  queue::UpdateRequest longer;
  longer.receipt = got[0].receipt;
  longer.visibility = absl::Minutes(1);
  EXPECT_TRUE(store().Update(queue_, {longer})->front().ok());
  ASSERT_TRUE(store().Delete(queue_, {got[0].receipt})->front().ok());
  EXPECT_TRUE(absl::IsNotFound(store().Update(queue_, {longer})->front().status()));
  EXPECT_TRUE(store().Delete(queue_, {got[0].receipt})->front().ok()) << "as often as it is asked";
  ASSERT_TRUE(store().Clear(queue_).ok());
  longer.receipt = got[1].receipt;
  EXPECT_TRUE(absl::IsNotFound(store().Update(queue_, {longer})->front().status()));
}

// nats-server 2.9.10 makes two consumers of one name when two processes ask at the same moment, and
// then leaves every pull unanswered: the results of a batch were never counted.
TEST_P(JetStreamQueueStoreTest, AProcessWaitsForTheConsumerThatAnotherOneMakes) {
  const queue::QueueId made{"acme", "made-at-once"};
  const std::string create = absl::StrCat("$JS.API.CONSUMER.DURABLE.CREATE.", StreamOf(made), ".");
  const std::string look = absl::StrCat("$JS.API.CONSUMER.INFO.", StreamOf(made), ".");
  absl::Notification first_makes, second_waits;
  TappedConnection first(client_->connection.get(), [&](absl::string_view subject) {
    if (!absl::StartsWith(subject, create)) return;
    first_makes.Notify();
    second_waits.WaitForNotification();
  });
  TappedConnection second(client_->prompt.get(), [&](absl::string_view subject) {
    const bool creates = absl::StartsWith(subject, create);
    if (!creates && !absl::StartsWith(subject, look)) return;
    if (second_waits.HasBeenNotified()) return;
    EXPECT_FALSE(creates) << "before it looked";
    second_waits.Notify();
  });
  Options options = options_;
  options.prompt = nullptr;
  options.maker_grace = absl::Minutes(1);
  const auto first_store = OpenJetStreamQueues(&first, options).value();
  const auto second_store = OpenJetStreamQueues(&second, options).value();
  std::jthread maker([&] { EXPECT_TRUE(first_store->CreateQueue(made, {}).ok()); });
  first_makes.WaitForNotification();
  EXPECT_TRUE(second_store->CreateQueue(made, {}).ok());
  EXPECT_TRUE(second_store->Receive(made, {1})->empty());
}

TEST_P(JetStreamQueueStoreTest, ProcessesThatCreateAQueueAtTheSameMomentAllHaveIt) {
  Options options = options_;
  options.maker_grace = absl::Minutes(1);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<Client>(server_.url(), options));
  for (int round = 0; round < 20; ++round) {
    const queue::QueueId wanted{"acme", absl::StrCat("wanted-", round)};
    std::barrier begin(static_cast<std::ptrdiff_t>(clients.size()));
    std::vector<std::jthread> creators;
    for (const auto& client : clients) {
      creators.emplace_back([&, store = client->store.get()] {
        begin.arrive_and_wait();
        const absl::Status created = store->CreateQueue(wanted, {{"owner", "billing"}});
        EXPECT_TRUE(created.ok()) << created;
        const auto messages = store->Receive(wanted, {1});
        EXPECT_TRUE(messages.ok()) << messages.status();
      });
    }
    creators.clear();  // waits for them
  }
}

TEST_P(JetStreamQueueStoreTest, AQueueWhoseMakerDiedIsMadeByTheNextProcess) {
  const queue::QueueId left{"acme", "left"};
  ASSERT_TRUE(store().CreateQueue(left, {{"owner", "billing"}}).ok());
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  ASSERT_TRUE(jetstream.DeleteStream(StreamOf(left)).ok());  // as if never made
  const Client next(server_.url(), options_);
  ASSERT_TRUE(next.store->CreateQueue(left, {{"owner", "billing"}}).ok());
  EXPECT_TRUE(next.store->Put(left, Bodies(1)).ok());
  EXPECT_EQ(next.store->Receive(left, {1})->size(), 1u);
}

// A delete takes several steps. A client that made the queue again between them was told that there
// is no such queue, or waited in vain for whoever seemed to make it.
TEST_P(JetStreamQueueStoreTest, MakesAQueueAgainThatAnotherProcessIsDeleting) {
  const queue::QueueId again{"acme", "again"};
  const queue::Metadata before = {{"owner", "before"}}, after = {{"owner", "after"}};
  nats::JetStream deleter(client_->prompt.get(), absl::Seconds(10));
  for (const std::string& look : {absl::StrCat("MSG.GET.", AsideStreamOf(again)),
                                  absl::StrCat("CONSUMER.INFO.", StreamOf(again), ".")}) {
    ASSERT_TRUE(store().CreateQueue(again, before).ok());
    ASSERT_TRUE(deleter.DeleteStream(StreamOf(again)).ok());
    std::atomic<bool> ends = false;
    TappedConnection connection(client_->connection.get(), [&](absl::string_view subject) {
      if (!absl::StrContains(subject, look) || ends.exchange(true)) return;
      EXPECT_TRUE(deleter.DeleteStream(AsideStreamOf(again)).ok());
    });
    Options options = options_;
    options.prompt = nullptr;
    const auto maker = OpenJetStreamQueues(&connection, options).value();
    const absl::Status made = maker->CreateQueue(again, after);
    EXPECT_TRUE(made.ok()) << look << ": " << made;
    EXPECT_TRUE(ends) << look;
    EXPECT_EQ(maker->GetMetadata(again).value_or(before), after) << look;
    EXPECT_TRUE(store().DeleteQueue(again).ok());
  }
}

// A gateway whose clients make a queue for each answer kept them all, as others deleted them.
TEST_P(JetStreamQueueStoreTest, ForgetsQueuesOfWhichItHoldsNothing) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  AttemptLog attempts(&jetstream, options_.settings);
  HeldLog held(&jetstream, "", options_.settings, options_.clock);
  DeadLetterStore poison(&jetstream);
  constexpr size_t kMaxIdle = 2;
  WaitingPulls waits(jetstream.connection(), options_.clock);
  QueueRegistry registry({&jetstream, &jetstream, &waits}, {&attempts, &held}, &poison, &options_,
                         kMaxIdle);
  const StreamQueue* holding = nullptr;
  const auto queue = [](int i) { return queue::QueueId{"acme", absl::StrCat("answer-", i)}; };
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(registry.Create(queue(i), {}).ok());
    const auto found = registry.Find(queue(i)).value();
    if (i > 0) continue;
    ASSERT_TRUE(found->Put(Bodies(1)).ok());
    ASSERT_EQ(found->Receive(1)->size(), 1u);
    holding = found.get();
  }
  EXPECT_LE(registry.remembered(), kMaxIdle + 2) << "and one that is held, and the last";
  EXPECT_EQ(registry.Find(queue(0)).value().get(), holding);
  EXPECT_TRUE(registry.Find(queue(1)).ok());
}

// Metadata and causes, as the first release wrote them, and as a newer one might.
TEST_P(JetStreamQueueStoreTest, ReadsMetadataAndCausesOfOtherReleases) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  for (const char* cause :
       {R"({"attempts":5,"holder":"p-1","insertion_ns":1000,"reason":"it died","time_ns":2000})",
        R"({"attempts":5,"holder":"p-1","insertion_ns":1000,"reason":"it died","time_ns":2000,)"
        R"("fingerprint":{"newer":true}})"}) {
    ASSERT_TRUE(jetstream
                    .Publish({.subject = PoisonSubjectOf(queue_, {7}),
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

// A listing of all subjects for each page took the server seconds with a hundred thousand of them.
TEST_P(JetStreamQueueStoreTest, ReadsAPageOfPoisonWithARequestForEachMessageHoweverManyThereAre) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  std::vector<std::string> subjects;
  for (uint64_t i = 1; i <= 100; ++i) subjects.push_back(PoisonSubjectOf(queue_, {i, 1}));
  std::vector<nats::Outgoing> messages;
  for (const std::string& subject : subjects) messages.push_back({.subject = subject});
  const auto put = jetstream.Publish(messages);
  ASSERT_TRUE(put.ok()) << put.status();

  std::atomic<int> requests = 0;
  TappedConnection counted(client_->prompt.get(), [&](absl::string_view) { ++requests; });
  Options options = options_;
  options.prompt = nullptr;
  const auto store = OpenJetStreamQueues(&counted, options).value();
  const std::string after = store->ListPoison(queue_, "", 60)->back().message_id;
  requests = 0;
  const auto page = store->ListPoison(queue_, after, 10);
  ASSERT_TRUE(page.ok() && page->size() == 10u) << page.status();
  EXPECT_EQ(requests, 1 + 10) << "the state of the stream, and the messages";

  // Where most of it is gone.
  for (uint64_t i = 1; i <= 100; ++i) {
    if (i % 25 == 0) continue;
    ASSERT_TRUE(jetstream.DeleteMessage(AsideStreamOf(queue_), (*put)[i - 1]->sequence).ok());
  }
  requests = 0;
  EXPECT_EQ(store->ListPoison(queue_, "", 1000)->size(), 4u);
  EXPECT_LE(requests, 32 + 4 * 3);
}

// In one call, a purge of hundreds of thousands took longer than a call may take.
TEST_P(JetStreamQueueStoreTest, PurgesPoisonStepByStep) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  DeadLetterStore stepping(&jetstream, 2);
  for (const uint64_t sequence : {1, 2, 3, 4, 5}) {
    const std::string subject = PoisonSubjectOf(queue_, {sequence, 1});
    ASSERT_TRUE(jetstream.Publish({.subject = subject}).ok());
  }
  EXPECT_EQ(*stepping.Purge(queue_), 5);
  EXPECT_EQ(*stepping.Purge(queue_), 0);
  EXPECT_EQ(*stepping.Count(queue_), 0);
  EXPECT_TRUE(store().GetMetadata(queue_).ok());
}

// A new stream gives the places again.
TEST_P(JetStreamQueueStoreTest, NamesNoOtherPoisonByAnIdOfAStreamThatWasLost) {
  const auto give_one_up = [this] {
    EXPECT_TRUE(store().CreateQueue(queue_, {}).ok());
    EXPECT_TRUE(store().Put(queue_, Bodies(1)).ok());
    queue::DeadLetterRequest request;
    request.receipt = store().Receive(queue_, {1})->front().receipt;
    EXPECT_TRUE(store().DeadLetter(queue_, {request})->front().ok());
    return store().ListPoison(queue_, "", 1)->front().message_id;
  };
  const std::string lost = give_one_up();
  std::string id;
  do {  // one time in four thousand they have the same mark
    ASSERT_TRUE(store().DeleteQueue(queue_).ok());
    id = give_one_up();
  } while (id == lost);
  EXPECT_EQ(*store().Redrive(queue_, {lost}, 1), 0);
  EXPECT_EQ(*store().DropPoison(queue_, {lost}), 0);
  EXPECT_EQ(*store().Redrive(queue_, {id}, 1), 1);
}

TEST_P(JetStreamQueueStoreTest, TakesTheMetadataOfAQueueForNoPoison) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  const nats::StoredMessage metadata =
      jetstream.LastMessage(AsideStreamOf(queue_), MetadataSubjectOf(queue_)).value();
  const auto mark = static_cast<uint64_t>(1 + absl::ToUnixMicros(metadata.time) % 0xfff);
  const std::string id = MessageIdOf(queue_, metadata.sequence | mark << 48);
  EXPECT_EQ(*store().DropPoison(queue_, {id}), 0);
  EXPECT_EQ(*store().Redrive(queue_, {id}, 1), 0);
  EXPECT_TRUE(store().ListPoison(queue_, "", 10)->empty());
  EXPECT_TRUE(store().GetMetadata(queue_).ok());
}

// With or without a redrive, a body may be any bytes.
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

// The messages of a window are on their way together: that the first is refused says nothing of the
// others.
TEST_P(JetStreamQueueStoreTest, SaysThatTheOutcomeOfAPutIsUnknownWhereAPartOfItIsStored) {
  nats::JetStream jetstream(client_->connection.get(), absl::Seconds(10));
  nlohmann::json config = *jetstream.StreamConfig(StreamOf(queue_));
  config["max_msg_size"] = 1000;
  ASSERT_TRUE(jetstream.Call(absl::StrCat("STREAM.UPDATE.", StreamOf(queue_)), config).ok());
  std::vector<queue::NewMessage> messages = Bodies(2);
  messages[0].body.assign(2000, 'x');
  const absl::Status half = store().Put(queue_, messages).status();
  EXPECT_TRUE(absl::IsUnavailable(half)) << half;
  EXPECT_EQ(store().Stats(queue_)->ready, 1);
  messages.pop_back();
  const absl::Status none = store().Put(queue_, messages).status();
  EXPECT_FALSE(none.ok() || absl::IsUnavailable(none)) << none;
}

TEST_P(JetStreamQueueStoreTest, PutsNothingWhereTheServerOfNowTakesNotAllOfTheBodies) {
  nats::testing::NatsServer smaller(GetParam(), "max_payload: 200000\n");
  smaller.Kill();
  const Client roaming(absl::StrCat(server_.url(), ",", smaller.url()), options_);
  ASSERT_TRUE(roaming.store->Stats(queue_).ok()) << "it knows the queue";
  server_.Kill();
  smaller.Restart();
  const Client there(smaller.url(), options_);
  ASSERT_TRUE(there.store->CreateQueue(queue_, {}).ok());
  ASSERT_TRUE(Insist([&] { return roaming.store->Stats(queue_); }).ok());
  std::vector<queue::NewMessage> messages = Bodies(300);  // more than one window
  messages.back().body.assign(300'000, 'x');
  const absl::Status status = roaming.store->Put(queue_, messages).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(there.store->Stats(queue_)->ready, 0);
}

// A key that is held for days keeps its message at the head of its partition. The next owner asked
// about each message that was settled meanwhile.
TEST_P(JetStreamQueueStoreTest, ReclaimsWhatIsLeftWithoutAskingAboutAllThatIsGone) {
  ASSERT_TRUE(queue::SetVisibility(&store(), queue_, absl::Hours(1)).ok());
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  ASSERT_EQ(store().Receive(queue_, {1})->size(), 1u);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(store().Put(queue_, Bodies(1000)).ok());
  for (size_t settled = 0; settled < 2000;) {
    const auto held = store().Receive(queue_, {32});
    ASSERT_TRUE(held.ok()) << held.status();
    std::vector<queue::Receipt> receipts;
    for (const queue::Message& message : *held) receipts.push_back(message.receipt);
    ASSERT_TRUE(store().Delete(queue_, receipts).ok());
    settled += held->size();
  }
  ASSERT_TRUE(store().Put(queue_, Bodies(1)).ok());
  ASSERT_EQ(store().Receive(queue_, {1})->size(), 1u);

  std::atomic<int> requests = 0;
  TappedConnection counted(client_->prompt.get(), [&](absl::string_view) { ++requests; });
  Options options = options_;
  options.prompt = nullptr;
  const auto next = OpenJetStreamQueues(&counted, options).value();
  ASSERT_TRUE(next->Stats(queue_).ok()) << "it knows the queue";
  requests = 0;
  ASSERT_EQ(next->Reclaim(queue_).value(), 2003u);
  EXPECT_LT(requests, 1100) << "one step, and the last message";
  std::vector<uint64_t> positions;
  for (int looks = 0; positions.size() < 2 && looks < 5000; ++looks) {
    const auto again = next->Receive(queue_, {32});
    ASSERT_TRUE(again.ok()) << again.status();
    for (const queue::Message& message : *again) positions.push_back(message.position);
  }
  EXPECT_THAT(positions, UnorderedElementsAre(1u, 2002u));
}

TEST_P(JetStreamQueueStoreTest, NeedsAServerWithJetStream) {
  nats::testing::NatsServer plain(GetParam(), "", nats::testing::NatsServer::Persistence::kNone);
  const auto connection = nats::Connection::Open(plain.url(), {}).value();
  const auto store = OpenJetStreamQueues(connection.get(), {});
  EXPECT_TRUE(absl::IsFailedPrecondition(store.status())) << store.status();
  EXPECT_THAT(store.status().message(), HasSubstr("start it with JetStream (nats-server -js"))
      << "this is all that a service says when it ends of it";
}

INSTANTIATE_TEST_SUITE_P(Servers, JetStreamQueueStoreTest,
                         ::testing::ValuesIn(nats::testing::NatsServer::Programs()),
                         [](const auto& server) { return absl::StrCat("Server", server.index); });

}  // namespace
}  // namespace muster::queue::jetstream
