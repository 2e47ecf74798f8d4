// SPDX-License-Identifier: Apache-2.0

// Requests, subscriptions and publishes of a connection, also when the server hangs up.

#include "muster/nats/connection.h"

#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/tls.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/nats/fake_server.h"
#include "tests/fakes/nats/nats_server.h"
#include "tests/fakes/rpc/test_certificates.h"

namespace muster::nats {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(10);

class Heard {
 public:
  Connection::MessageHandler MessageHandler() {
    return [this](const Incoming& message) {
      base::MutexLock lock(&mu_);
      texts_.push_back(message.data);
      changed_.NotifyAll();
    };
  }
  std::vector<std::string> Await(size_t count) {
    base::MutexLock lock(&mu_);
    while (texts_.size() < count) changed_.Wait(&mu_);
    return texts_;
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<std::string> texts_;
};

class ConnectionTest : public ::testing::Test {
 protected:
  // Answers each request to "echo" with its text, except for the request "hush".
  std::unique_ptr<Connection::Subscription> Echo() {
    return connection_
        ->Subscribe(
            "echo",
            [this](const Incoming& request) {
              if (request.data == "hush") return;
              for (const char* times = request.data == "twice" ? "12" : "1"; *times; ++times) {
                EXPECT_TRUE(
                    connection_->Publish({.subject = request.reply, .data = request.data}).ok());
              }
            })
        .value();
  }

  testing::NatsServer server_;
  const std::unique_ptr<Connection> connection_ = Connection::Open(server_.url(), {}).value();
};

TEST_F(ConnectionTest, HearsWhatIsPublished) {
  Heard heard;
  const auto subscription = connection_->Subscribe("news.*", heard.MessageHandler()).value();
  const std::string zero("a\0b", 3);
  for (const std::string& text : {zero, std::string("second"), std::string()}) {
    EXPECT_TRUE(connection_->Publish({.subject = "news.all", .data = text}).ok());
  }
  EXPECT_THAT(heard.Await(3), ElementsAre(zero, "second", ""));
  EXPECT_TRUE(connection_->connected());
}

TEST_F(ConnectionTest, HasPublishedNowWhatTheServerConfirms) {
  const auto other = Connection::Open(server_.url(), {}).value();
  Heard heard;
  const auto subscription = other->Subscribe("news", heard.MessageHandler()).value();
  ASSERT_TRUE(other->Flush(kPatience).ok());
  EXPECT_TRUE(connection_->PublishNow({.subject = "news", .data = "now"}, kPatience).ok());
  EXPECT_THAT(heard.Await(1), ElementsAre("now"));
}

TEST_F(ConnectionTest, PublishesNothingNowWhereNobodyConfirms) {
  server_.Freeze();
  const absl::Status silent =
      connection_->PublishNow({.subject = "news", .data = "?"}, absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsUnavailable(silent)) << silent;
  EXPECT_THAT(silent.message(), HasSubstr("news"));
  server_.Thaw();
  EXPECT_TRUE(connection_->PublishNow({.subject = "news", .data = "!"}, kPatience).ok());
  server_.Kill();
  const absl::Status gone = connection_->PublishNow({.subject = "news"}, kPatience);
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
}

TEST_F(ConnectionTest, HearsNothingOnceASubscriptionEnded) {
  Heard ended, stays;
  auto subscription = connection_->Subscribe("news", ended.MessageHandler()).value();
  const auto other = connection_->Subscribe("news", stays.MessageHandler()).value();
  subscription.reset();
  EXPECT_TRUE(connection_->Publish({.subject = "news", .data = "late"}).ok());
  stays.Await(1);
  EXPECT_THAT(ended.Await(0), IsEmpty());
}

TEST_F(ConnectionTest, BringsEachReplyToItsRequest) {
  const auto echo = Echo();
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back(absl::StrCat("request ", i));
  std::vector<Outgoing> requests;
  for (const std::string& text : texts) requests.push_back({.subject = "echo", .data = text});
  const auto answers = connection_->RequestAll(requests, kPatience);
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(answers->size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ((*answers)[i]->data, texts[i]);
}

TEST_F(ConnectionTest, TellsWhichRequestWasNotAnswered) {
  const auto echo = Echo();
  const auto answers = connection_->RequestAll(
      {{.subject = "echo", .data = "a"}, {.subject = "echo", .data = "hush"}}, absl::Seconds(3));
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_TRUE((*answers)[0].ok());
  EXPECT_TRUE(absl::IsUnavailable((*answers)[1].status())) << (*answers)[1].status();
}

TEST_F(ConnectionTest, CountsAReplyOnceThatComesTwice) {
  const auto echo = Echo();
  const auto answers = connection_->RequestAll(
      {{.subject = "echo", .data = "twice"}, {.subject = "echo", .data = "b"}}, kPatience);
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ((*answers)[0]->data, "twice");
  EXPECT_EQ((*answers)[1]->data, "b");
}

TEST_F(ConnectionTest, SaysThatTheOutcomeIsUnknownOnceSomeRequestsAreSent) {
  const auto echo = Echo();
  const std::string too_large(static_cast<size_t>(connection_->max_payload()) + 1, 'x');
  const Outgoing sound{.subject = "echo", .data = "a"};
  const Outgoing refused{.subject = "echo", .data = too_large};
  const absl::Status first = connection_->RequestAll({refused, sound}, kPatience).status();
  EXPECT_TRUE(absl::IsInvalidArgument(first)) << first;
  const absl::Status second = connection_->RequestAll({sound, refused}, kPatience).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
}

// nats.c reads the files once, and was refused for ever once the certificate of then had expired.
TEST(RenewedConnectionTest, SaysThatOnlyANewOneShowsTheCertificateThatWasRenewed) {
  const os::TempDir folder;
  rpc::TestAuthority authority("nats");
  const std::string ca = folder / "ca.pem", own = folder / "own", at_server = folder / "server";
  authority.WriteRoot(ca);
  authority.Issue("worker", "DNS:localhost", own);
  authority.Issue("server", "IP:127.0.0.1", at_server);
  const rpc::TlsFiles server_files = rpc::FilesBehind(at_server, ""),
                      files = rpc::FilesBehind(own, "");
  testing::NatsServer server(
      testing::NatsServer::Programs().front(),
      absl::StrCat("tls { cert_file: \"", server_files.certificate, "\", key_file: \"",
                   server_files.key, "\", ca_file: \"", ca, "\", verify: true }"));
  std::promise<std::string> refused;
  auto is_refused = refused.get_future();
  ConnectionOptions options;
  options.ca_file = ca;
  options.certificate_file = files.certificate;
  options.key_file = files.key;
  options.patience_when_renewed = absl::ZeroDuration();
  std::atomic<int> back = 0;
  options.on_change = [&back](bool connected) { back += connected ? 1 : 0; };
  options.on_refused = [&refused](const absl::Status& why) {
    refused.set_value(std::string(why.message()));
  };
  const auto connection = Connection::Open(server.url(), options).value();
  server.Kill();
  server.Restart();
  while (back == 0) base::LetOthersRun();
  ASSERT_NE(is_refused.wait_for(std::chrono::seconds(0)), std::future_status::ready)
      << "the files are as they were";
  authority.Issue("worker", "DNS:localhost", own);
  server.Kill();
  EXPECT_THAT(is_refused.get(),
              HasSubstr("were renewed; a restart makes a new one, which shows them"));
}

TEST_F(ConnectionTest, SaysAtOnceThatNobodyListens) {
  const auto answer = connection_->Request({.subject = "nobody"}, kPatience);
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_THAT(answer.status().message(), HasSubstr("no process listens"));
}

TEST_F(ConnectionTest, TakesOneReplyAfterTheOther) {
  const auto echo = Echo();
  std::vector<std::string> taken;
  const absl::Status status = connection_->RequestMany({.subject = "echo", .data = "twice"},
                                                       kPatience, [&](Incoming reply) {
                                                         taken.push_back(reply.data);
                                                         return taken.size() < 2;
                                                       });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(taken, ElementsAre("twice", "twice"));
}

TEST_F(ConnectionTest, TellsWhenItIsLostAndWhenItIsBack) {
  base::Mutex mu;
  base::CondVar changed;
  std::vector<bool> told;
  const auto connection = Connection::Open(server_.url(), {.on_change =
                                                               [&](bool connected) {
                                                                 base::MutexLock lock(&mu);
                                                                 told.push_back(connected);
                                                                 changed.NotifyAll();
                                                               }})
                              .value();
  server_.Kill();
  server_.Restart();
  base::MutexLock lock(&mu);
  while (told.size() < 2) changed.Wait(&mu);
  EXPECT_THAT(told, ElementsAre(false, true));
}

TEST_F(ConnectionTest, ComesBackAfterTheServerWasKilled) {
  Heard heard;
  const auto subscription = connection_->Subscribe("news", heard.MessageHandler()).value();
  server_.Kill();
  const auto lost = connection_->Request({.subject = "echo"}, absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsUnavailable(lost.status())) << lost.status();
  server_.Restart();
  const auto echo = Echo();
  absl::Status status = absl::UnavailableError("");
  for (int i = 0; i < 100 && absl::IsUnavailable(status); ++i) {
    status = connection_->Request({.subject = "echo", .data = "again"}, absl::Milliseconds(300))
                 .status();
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(connection_->Publish({.subject = "news", .data = "back"}).ok());
  EXPECT_THAT(heard.Await(1), ElementsAre("back"));
}

// Takes so many calls at the place of a server that is dead, and hangs up on each.
void HangUpOnTries(const std::string& url, int tries) {
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(url.substr(url.rfind(':') + 1), &port));
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&place), sizeof(place)), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  for (int i = 0; i < tries; ++i) close(accept(listener, nullptr, nullptr));
  close(listener);
}

// One outage during which a balancer, or a server that refused the user, took each try raised the
// alert that tells of many.
TEST_F(ConnectionTest, CountsNoTryThatFailedAsAReturn) {
  EXPECT_EQ(connection_->times_back(), 0);
  server_.Kill();
  HangUpOnTries(server_.url(), 3);
  server_.Restart();
  while (connection_->times_back() == 0) base::LetOthersRun();
  EXPECT_EQ(connection_->times_back(), 1);
  EXPECT_GT(connection_->reconnects(), 1) << "no try got through to be counted";
}

// Receives the losses and returns of a connection.
class Changes {
 public:
  std::function<void(bool connected)> MessageHandler() {
    return [this](bool connected) {
      base::MutexLock lock(&mu_);
      connected_ = connected;
      changed_.NotifyAll();
    };
  }
  void Await(bool connected) {
    base::MutexLock lock(&mu_);
    while (connected_ != connected) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  bool connected_ ABSL_GUARDED_BY(mu_) = true;
};

TEST_F(ConnectionTest, WaitsNoLongerForALostServerOnceItsPatienceIsLimited) {
  Changes changes;
  const auto following = connection_->FollowChanges(changes.MessageHandler()).value();
  const std::vector<Outgoing> three(3, {.subject = "echo"});
  const auto take = [](const Incoming&) { return false; };
  const auto to_hear = AllOf(HasSubstr("no answer from echo"), HasSubstr("about to end"));
  connection_->LimitPatience(absl::ZeroDuration());
  server_.Kill();
  changes.Await(false);
  for (const absl::Status& lost : {connection_->Request(three[0], absl::Hours(1)).status(),
                                   connection_->RequestAll(three, absl::Hours(1)).status(),
                                   connection_->RequestMany(three[0], absl::Hours(1), take)}) {
    EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
    EXPECT_THAT(lost.ToString(), to_hear);
  }
  // What is left of it is all that a request has.
  connection_->LimitPatience(absl::Milliseconds(50));
  EXPECT_THAT(connection_->Request(three[0], absl::Hours(1)).status().ToString(),
              HasSubstr("no answer from echo"));
  server_.Restart();
  changes.Await(true);
  const auto echo = Echo();
  ASSERT_TRUE(connection_->Flush(kPatience).ok());
  EXPECT_TRUE(connection_->Request({.subject = "echo", .data = "again"}, kPatience).ok());
}

// Publishes `text` until a publish is refused, at most `most` times; returns the number of accepted
// publishes.
size_t Fill(Connection& connection, const std::string& text, size_t most, absl::Status* refused) {
  for (size_t taken = 0; taken < most; ++taken) {
    *refused = connection.Publish({.subject = "news", .data = text});
    if (!refused->ok()) return taken;
  }
  return most;
}

// Under a sanitizer, whose allocator has no such statistics, the numbers mean nothing.
size_t UsedHeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Polls, because nats.c frees messages on its own thread.
bool FallsTo(size_t used_heap_bytes) {
  base::Clock* const clock = base::RealClock();
  const absl::Duration deadline = clock->Monotonic() + kPatience;
  while (UsedHeapBytes() > used_heap_bytes) {
    if (clock->Monotonic() > deadline) return false;
    base::LetOthersRun();
  }
  return true;
}

TEST_F(ConnectionTest, KeepsABoundedAmountForALostServerAndRefusesTheRestUntilItIsBack) {
  Changes changes;
  const auto connection =
      Connection::Open(server_.url(), {.on_change = changes.MessageHandler()}).value();
  Heard heard;
  const auto subscription = connection->Subscribe("news", heard.MessageHandler()).value();
  ASSERT_TRUE(connection->Flush(kPatience).ok());
  server_.Kill();
  changes.Await(false);

  const std::string text(size_t{64} << 10, 'x');
  const size_t room = kMaxReconnectBufferBytes / text.size();
  absl::Status refused;
  const size_t taken = Fill(*connection, text, 2 * room, &refused);
  EXPECT_GE(taken, room - 1) << "what waits has some bytes around it";
  EXPECT_LE(taken, room + 1) << "the last may stand over";
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("news"), HasSubstr("buffer")));
  const auto asked = connection->Request({.subject = "news", .data = text}, kPatience);
  EXPECT_TRUE(absl::IsUnavailable(asked.status())) << asked.status();
  EXPECT_THAT(asked.status().message(), HasSubstr("buffer"));

  const size_t used = UsedHeapBytes();
  size_t more = 0;
  for (size_t i = 0; i < 4 * room; ++i) more += Fill(*connection, text, 1, &refused);
  EXPECT_EQ(more, 0U);
  EXPECT_TRUE(FallsTo(used + (size_t{1} << 20))) << "32 MiB were refused";

  server_.Restart();
  changes.Await(true);
  EXPECT_TRUE(connection->Publish({.subject = "news", .data = "last"}).ok());
  const std::vector<std::string> texts = heard.Await(taken + 1);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), text), static_cast<ptrdiff_t>(taken));
  EXPECT_EQ(texts.back(), "last");
}

TEST(ConnectionOpenTest, IsUnavailableWhereNobodyAnswers) {
  const auto connection = Connection::Open("nats://127.0.0.1:1", {});
  EXPECT_TRUE(absl::IsUnavailable(connection.status())) << connection.status();
  EXPECT_THAT(connection.status().message(), HasSubstr("nats://127.0.0.1:1"));
}

TEST(ConnectionOpenTest, TellsNobodyThePasswordInItsUrl) {
  const auto connection = Connection::Open("nats://bob:secret@127.0.0.1:1,nats://127.0.0.1:2", {});
  EXPECT_THAT(connection.status().message(), HasSubstr("nats://127.0.0.1:1,nats://127.0.0.1:2"));
}

TEST(ConnectionOpenTest, RefusesAFileOfAuthoritiesThatIsNotThere) {
  testing::NatsServer server;
  const auto connection = Connection::Open(server.url(), {.ca_file = "/nonexistent/ca.pem"});
  EXPECT_TRUE(absl::IsInvalidArgument(connection.status())) << connection.status();
}

// Sends its greeting, and resets the connection when the test calls HangUp.
class HangsUp {
 public:
  HangsUp() : server_([this](int guest) { Talk(guest); }) {}

  std::string url() const { return absl::StrCat("nats://", server_.address()); }
  void HangUp() {
    told_.set_value();
    gone_.get_future().wait();
  }

 private:
  void Talk(int guest) {
    FakeServer::Say(guest,
                    "INFO {\"server_id\":\"x\",\"version\":\"2.10.0\",\"proto\":1,"
                    "\"headers\":true,\"max_payload\":1048576}\r\n");
    FakeServer::ReceiveUntil(guest, "PING\r\n");
    FakeServer::Say(guest, "PONG\r\n");
    told_.get_future().wait();
    const linger reset{1, 0};
    setsockopt(guest, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(guest);
    gone_.set_value();
  }

  std::promise<void> told_, gone_;
  FakeServer server_;
};

TEST(WithoutSecretsTest, LeavesNoUserAndNoPasswordInAnyUrl) {
  EXPECT_EQ(WithoutSecrets("nats://a:1,tls://user:se@cret@b:2"), "nats://a:1,tls://b:2");
  EXPECT_EQ(WithoutSecrets("user:secret@a:1,token@b"), "a:1,b");
  EXPECT_EQ(WithoutSecrets("nats:/user:secret@a"), "a");
  EXPECT_EQ(WithoutSecrets("a:4222"), "a:4222");
  EXPECT_EQ(WithoutSecrets(""), "");
}

// nats.c notices the loss at its next read or its next write, whichever comes first.
TEST(HangUpTest, ConfirmsNothingWhereTheServerHasHungUp) {
  for (int i = 0; i < 20; ++i) {
    HangsUp server;
    const auto connection = Connection::Open(server.url(), {});
    ASSERT_TRUE(connection.ok()) << connection.status();
    server.HangUp();
    const absl::Status lost =
        (*connection)->PublishNow({.subject = "news", .data = "!"}, absl::Seconds(10));
    EXPECT_TRUE(absl::IsUnavailable(lost)) << "the server was gone; at connection " << i;
  }
}

}  // namespace

}  // namespace muster::nats
