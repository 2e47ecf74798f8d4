// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/http/server.h"

#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/queue-gateway/http/server_fixture.h"
#include "tests/fakes/telemetry/peer.h"

namespace muster::queue_gateway::http {
namespace {

using telemetry::Peer;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(HttpServerTest, HandsOverARequestAndSendsTheReply) {
  const auto server = Start();
  EXPECT_THAT(Peer(server->address()).Ask(Put("X-Echo:  a b \r\nContent-Length: 5\r\n", "hello")),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nx-echo: a b\r\n"),
                    HasSubstr("\r\nContent-Length: 14\r\n"), EndsWith("\r\n\r\nPUT /q [hello]")));
}

TEST_F(HttpServerTest, KeepsAConnectionForFurtherRequests) {
  const auto server = Start();
  Peer peer(server->address());
  peer.Send(Get("/1"));
  EXPECT_THAT(peer.ReadUntil("[]"), EndsWith("GET /1 []"));
  peer.Send(Get("/2"));
  EXPECT_THAT(peer.ReadUntil("[]"), EndsWith("GET /2 []"));
  EXPECT_EQ(server->connections(), 1);
}

// A server whose disk had stood still went on with what its clients had given up, and tried again:
// messages were put twice, and others leased to nobody.
TEST_F(HttpServerTest, RunsNothingForAPeerThatHungUpWhileItWaitedForAWorker) {
  ServerOptions options;
  options.workers = 1;
  options.stale_after = absl::ZeroDuration();
  const auto server = Start(options);
  Peer busy(server->address());
  busy.Send(Get("/wait"));
  AwaitWaiting(1);
  Peer(server->address()).Send(Get("/gone"));
  Peer stays(server->address());
  stays.Send(Get("/stays"));
  Release();
  EXPECT_THAT(busy.ReadUntil("[]"), EndsWith("GET /wait []"));
  EXPECT_THAT(stays.ReadUntil("[]"), EndsWith("GET /stays []"));
  while (server->connections() > 2) base::LetOthersRun();
  EXPECT_EQ(handled_, 2);
}

TEST_F(HttpServerTest, AnswersInOrderWhatAPeerSendsAhead) {
  const auto server = Start();
  const std::string replies =
      Peer(server->address()).Ask(absl::StrCat(Get("/1"), Get("/2"), LastGet("/3")));
  EXPECT_LT(replies.find("GET /1 []"), replies.find("GET /2 []"));
  EXPECT_LT(replies.find("GET /2 []"), replies.find("GET /3 []"));
  EXPECT_THAT(replies, EndsWith("GET /3 []"));
}

TEST_F(HttpServerTest, PassesOverEmptyLinesBetweenRequests) {
  const auto server = Start();
  Peer peer(server->address());
  peer.Send("\r\n");
  peer.Send(absl::StrCat("\r\n\n", Get("/1"), "\r\n", Get("/2"), "\r\n"));
  EXPECT_THAT(peer.ReadUntil("/2 []"), HasSubstr("GET /1 []"));
  peer.Send(absl::StrCat("\r\n", LastGet("/3")));
  EXPECT_THAT(peer.ReadToEnd(), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("GET /3 []")));
}

TEST_F(HttpServerTest, ClosesTheConnectionOfAnOldPeer) {
  const auto server = Start();
  EXPECT_THAT(Peer(server->address()).Ask("GET / HTTP/1.0\r\n\r\n"), EndsWith("GET / []"));
}

TEST_F(HttpServerTest, JoinsTheChunksOfABody) {
  const auto server = Start();
  EXPECT_THAT(Peer(server->address())
                  .Ask(Put("Transfer-Encoding: chunked\r\n",
                           "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n")),
              EndsWith("PUT /q [abcde]"));
}

TEST_F(HttpServerTest, AsksForABodyThatIsHeldBack) {
  const auto server = Start();
  Peer peer(server->address());
  peer.Send(Put("Expect: 100-continue\r\nContent-Length: 2\r\n", ""));
  EXPECT_THAT(peer.ReadUntil(kEnd), StartsWith("HTTP/1.1 100 Continue\r\n"));
  EXPECT_THAT(peer.Ask("hi"), EndsWith("PUT /q [hi]"));
}

// HTTP/1.0 has no interim replies (RFC 9110 §10.1.1).
TEST_F(HttpServerTest, SendsAnOldPeerNothingButTheReply) {
  const auto server = Start();
  EXPECT_THAT(Peer(server->address())
                  .Ask("PUT /q HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi"),
              AllOf(StartsWith("HTTP/1.0 200 "), EndsWith("PUT /q [hi]")));
}

TEST_F(HttpServerTest, SendsNoBodyForHeadAndForNoContent) {
  const auto server = Start();
  EXPECT_THAT(
      Peer(server->address()).Ask("HEAD /q HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
      AllOf(HasSubstr("\r\nContent-Length: 10\r\n"), EndsWith(kEnd)));
  EXPECT_THAT(Peer(server->address()).Ask(LastGet("/none")),
              AllOf(StartsWith("HTTP/1.1 204 "), Not(HasSubstr("Content-Length")), EndsWith(kEnd)));
}

TEST_F(HttpServerTest, RefusesWhatIsNoProperRequest) {
  const auto server = Start();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nonsense\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},                        // no Host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},  // two of them
      {Get("/", "Broken\r\n"), "400"},
      {Get("/", "Content-Length: -1\r\n"), "400"},
      {Get("/", "Content-Length: 1x\r\n"), "400"},
      {Get("/", "Content-Length: 1\r\nContent-Length: 2\r\n"), "400"},
      {Get("/", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), "400"},
      {Get("/", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), "400"},
      {Get("/", "Transfer-Encoding: gzip, chunked\r\n"), "501"},
      {Get(absl::string_view("/a\0b", 4)), "400"},
      {Get("/", absl::string_view("X: a\0b\r\n", 8)), "400"},
      {Put("Transfer-Encoding: chunked\r\n", "zz\r\n"), "400"},
  };
  for (const auto& [request, status] : cases) {
    EXPECT_THAT(Peer(server->address()).Ask(request),
                AllOf(StartsWith("HTTP/1.1 " + status + " "), HasSubstr("x-refused: yes\r\n"),
                      HasSubstr("Connection: close\r\n")))
        << request;
  }
  EXPECT_EQ(handled_, 0);
}

// Keeps the exchange of each request, and notes which peers have gone.
class AsyncHttpServerTest : public ::testing::Test {
 protected:
  AsyncHttpServerTest() {
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.workers = 1;
    server_ = *Server::Start(
        options,
        [this](const Request& request, std::shared_ptr<Exchange> exchange) {
          exchange->WatchPeer([this, target = request.target] {
            base::MutexLock lock(&mu_);
            kept_.erase(target);
            gone_.push_back(target);
            changed_.NotifyAll();
          });
          base::MutexLock lock(&mu_);
          kept_[request.target] = std::move(exchange);
          changed_.NotifyAll();
        },
        [](int status, const Request&) {
          return Reply{status, {}, ""};
        });
  }
  ~AsyncHttpServerTest() override {
    kept_.clear();
    server_.reset();
  }

  std::shared_ptr<Exchange> Take(const std::string& target) {
    base::MutexLock lock(&mu_);
    while (!kept_.contains(target)) changed_.Wait(&mu_);
    auto exchange = std::move(kept_[target]);
    kept_.erase(target);
    return exchange;
  }
  void AwaitKept(size_t count) {
    base::MutexLock lock(&mu_);
    while (kept_.size() < count) changed_.Wait(&mu_);
  }
  std::vector<std::string> AwaitGone(size_t count) {
    base::MutexLock lock(&mu_);
    while (gone_.size() < count) changed_.Wait(&mu_);
    return gone_;
  }

  base::Mutex mu_;
  base::CondVar changed_;
  std::map<std::string, std::shared_ptr<Exchange>> kept_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> gone_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Server> server_;
};

TEST_F(AsyncHttpServerTest, AnswersLongAfterTheHandlerHasReturned) {
  Peer first(server_->address()), second(server_->address());
  first.Send(Get("/1"));
  const auto exchange = Take("/1");
  // The only worker is free for others.
  second.Send(LastGet("/2"));
  Take("/2")->Answer({200, {}, "two"});
  EXPECT_THAT(second.ReadToEnd(), EndsWith("two"));
  exchange->Answer({200, {}, "one"});
  EXPECT_THAT(first.ReadUntil("one"), EndsWith("one"));
  // The connection goes on, and is watched anew.
  first.Send(LastGet("/3"));
  Take("/3")->Answer({200, {}, "three"});
  EXPECT_THAT(first.ReadToEnd(), EndsWith("three"));
}

TEST_F(AsyncHttpServerTest, TellsWhenAPeerHangsUpAlsoBehindWhatItSentAhead) {
  {
    Peer silent(server_->address()), ahead(server_->address());
    silent.Send(Get("/silent"));
    ahead.Send(Get("/ahead"));
    AwaitKept(2);
    ahead.Send("GET /more");
  }
  EXPECT_THAT(AwaitGone(2), testing::UnorderedElementsAre("/silent", "/ahead"));
}

TEST_F(AsyncHttpServerTest, AnswersWhatWasSentAheadAfterwards) {
  Peer peer(server_->address());
  peer.Send(Get("/1"));
  AwaitKept(1);
  peer.Send(LastGet("/2"));
  Take("/1")->Answer({200, {}, "one"});
  Take("/2")->Answer({200, {}, "two"});
  EXPECT_THAT(peer.ReadToEnd(), AllOf(HasSubstr("one"), EndsWith("two")));
}

// What ends waits may take its time, and each of them gets an answer meanwhile.
TEST_F(AsyncHttpServerTest, SaysThatTheConnectionEndsFromTheBeginningOfADrain) {
  Peer waiting(server_->address()), idle(server_->address());
  waiting.Send(Get("/1"));
  idle.Send(Get("/2"));
  Take("/2")->Answer({200, {}, "two"});
  EXPECT_THAT(idle.ReadUntil("two"), EndsWith("two"));
  server_->BeginDrain();
  EXPECT_EQ(idle.ReadToEnd(), "");
  Take("/1")->Answer({200, {}, "one"});
  EXPECT_THAT(waiting.ReadToEnd(), AllOf(HasSubstr("Connection: close\r\n"), EndsWith("one")));
  server_->Drain(absl::Minutes(1));
  EXPECT_EQ(server_->connections(), 0);
}

TEST_F(AsyncHttpServerTest, RunsWhatHasArrivedWhenItDrains) {
  constexpr int kPeers = 50;
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<Peer>(server_->address()));
    peers.back()->Send(Get(absl::StrCat("/", i)));
  }
  Peer last(server_->address());  // connections are accepted in their order
  last.Send(Get("/last"));
  Take("/last")->Answer({200, {}, "last"});
  EXPECT_THAT(last.ReadUntil("last"), EndsWith("last"));
  server_->BeginDrain();
  for (int i = 0; i < kPeers; ++i) {
    Take(absl::StrCat("/", i))->Answer({200, {}, "done"});
    EXPECT_THAT(peers[i]->ReadToEnd(), EndsWith("done"));
  }
}

TEST_F(HttpServerTest, AnswersWhatIsUnderWayWhenItDrains) {
  const auto server = Start();
  Peer idle(server->address());
  idle.Send(Get("/1"));
  EXPECT_THAT(idle.ReadUntil("[]"), EndsWith("GET /1 []"));
  Peer busy(server->address());
  busy.Send(Get("/wait"));
  AwaitWaiting(1);
  std::thread drain([&] { server->Drain(absl::Minutes(1)); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  Release();
  EXPECT_THAT(busy.ReadToEnd(), AllOf(HasSubstr("Connection: close\r\n"), EndsWith("/wait []")));
  drain.join();
  EXPECT_EQ(server->connections(), 0);
}

TEST_F(HttpServerTest, SaysWhyItCannotStart) {
  const auto server = Start();
  ServerOptions options;
  options.address = server->address();
  const auto second = Server::Start(
      options, [](const Request&) { return Reply(); }, [](int, const Request&) { return Reply(); });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr(server->address()));
}

}  // namespace
}  // namespace muster::queue_gateway::http
