// SPDX-License-Identifier: Apache-2.0

// What the HTTP server takes, holds and waits for at most.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/queue-gateway/http/server.h"
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

TEST_F(HttpServerTest, BoundsTheHeaders) {
  ServerOptions options;
  options.max_header_bytes = 1024;
  const auto server = Start(options);
  EXPECT_THAT(Peer(server->address()).Ask(LastGet("/", "X: " + std::string(512, 'x') + "\r\n")),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Peer(server->address()).Ask(LastGet("/", "X: " + std::string(1024, 'x') + "\r\n")),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, BoundsTheBodyHoweverItIsSent) {
  ServerOptions options;
  options.max_body_bytes = 8;
  const auto server = Start(options);
  EXPECT_THAT(Peer(server->address()).Ask(Put("Content-Length: 8\r\n", "12345678")),
              EndsWith("[12345678]"));
  EXPECT_THAT(Peer(server->address()).Ask(Put("Content-Length: 9\r\n", "123456789")),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Peer(server->address())
                  .Ask(Put("Transfer-Encoding: chunked\r\n", "9\r\n123456789\r\n0\r\n\r\n")),
              StartsWith("HTTP/1.1 413 "));
}

// A peer that is still sending a body of megabytes must see why it was refused.
TEST_F(HttpServerTest, LetsAPeerSeeTheRefusalOfWhatItIsStillSending) {
  ServerOptions options;
  options.max_body_bytes = 8;
  const auto server = Start(options);
  Peer peer(server->address());
  peer.Send(Put("Content-Length: 1000000\r\n", ""));
  peer.Send(std::string(1'000'000, 'x'));
  EXPECT_THAT(peer.ReadToEnd(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, BoundsAllBodiesTogether) {
  ServerOptions options;
  options.max_body_bytes = 8;
  options.max_all_bodies_bytes = 10;
  const auto server = Start(options);
  Peer first(server->address());
  first.Send("POST /wait HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 8\r\n\r\n");
  first.Send("12345678");
  AwaitWaiting(1);
  EXPECT_THAT(Peer(server->address()).Ask(Put("Content-Length: 3\r\n", "123")),
              StartsWith("HTTP/1.1 503 "));
  Release();
  EXPECT_THAT(first.ReadToEnd(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Peer(server->address()).Ask(Put("Content-Length: 3\r\n", "123")),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, RefusesConnectionsBeyondTheirLimit) {
  ServerOptions options;
  options.max_connections = 1;
  const auto server = Start(options);
  Peer first(server->address());
  first.Send(Get("/1"));
  EXPECT_THAT(first.ReadUntil("[]"), EndsWith("GET /1 []"));
  EXPECT_EQ(Peer(server->address()).ReadToEnd(), "");
  EXPECT_THAT(first.Ask(LastGet("/2")), EndsWith("GET /2 []"));
}

TEST_F(HttpServerTest, CutsOffPeersThatSendSlowlyOrNothing) {
  ServerOptions options;
  options.idle_timeout = absl::Milliseconds(50);
  options.request_timeout = absl::Milliseconds(50);
  const auto server = Start(options);
  EXPECT_EQ(Peer(server->address()).ReadToEnd(), "");
  EXPECT_EQ(Peer(server->address()).Ask("GET / HTTP"), "");
  EXPECT_EQ(Peer(server->address()).Ask(Put("Content-Length: 9\r\n", "1234")), "");
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, CutsOffAPeerThatDoesNotReadItsReply) {
  ServerOptions options;
  options.reply_timeout = absl::Milliseconds(50);
  const auto server = Start(options);
  Peer peer(server->address());
  peer.Send(LastGet("/large"));
  while (handled_ == 0 || server->connections() > 0) base::LetOthersRun();
  EXPECT_LT(peer.ReadToEnd().size(), kLargeBytes);
}

// Peers that asked and did not read had no bound in bytes.
TEST_F(HttpServerTest, RefusesRequestsWhileUnreadRepliesFillTheMemoryOfBodies) {
  ServerOptions options;
  options.max_all_bodies_bytes = kLargeBytes - 1;
  const auto server = Start(options);
  Peer slow(server->address());
  slow.Send(LastGet("/large"));
  slow.ReadUntil(kEnd);
  EXPECT_THAT(Peer(server->address()).Ask(LastGet("/1")), StartsWith("HTTP/1.1 503 "));
  EXPECT_GT(slow.ReadToEnd().size(), kLargeBytes / 2);
  while (server->connections() > 0) base::LetOthersRun();
  EXPECT_THAT(Peer(server->address()).Ask(LastGet("/1")), EndsWith("GET /1 []"));
}

TEST_F(HttpServerTest, RunsAsManyRequestsAtATimeAsItHasWorkers) {
  ServerOptions options;
  options.workers = 8;
  const auto server = Start(options);
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 8; ++i) {
    peers.push_back(std::make_unique<Peer>(server->address()));
    peers.back()->Send(LastGet("/wait"));
  }
  AwaitWaiting(8);
  Release();
  for (const auto& peer : peers) EXPECT_THAT(peer->ReadToEnd(), EndsWith("GET /wait []"));
}

TEST_F(HttpServerTest, KeepsManyIdleConnectionsOnItsFewThreads) {
  const auto server = Start();
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 400; ++i) {
    peers.push_back(std::make_unique<Peer>(server->address()));
    peers.back()->Send(Get("/1"));
  }
  for (const auto& peer : peers) EXPECT_THAT(peer->ReadUntil("[]"), EndsWith("GET /1 []"));
  EXPECT_EQ(server->connections(), 400);
  for (const auto& peer : peers) peer->Send(LastGet("/2"));
  for (const auto& peer : peers) EXPECT_THAT(peer->ReadToEnd(), EndsWith("GET /2 []"));
}

TEST_F(HttpServerTest, SaysHowLongItKeepsAConnection) {
  ServerOptions options;
  options.idle_timeout = absl::Seconds(60);
  const auto server = Start(options);
  Peer peer(server->address());
  peer.Send(Get("/1"));
  // Less than it waits: the peer begins to count later.
  EXPECT_THAT(peer.ReadUntil("[]"), HasSubstr("\r\nKeep-Alive: timeout=55\r\n"));
  EXPECT_THAT(peer.Ask(LastGet("/2")),
              AllOf(HasSubstr("\r\nConnection: close\r\n"), Not(HasSubstr("Keep-Alive"))));
}

TEST_F(HttpServerTest, CutsOffWhatIsLeftAfterTheGrace) {
  const auto server = Start();
  Peer half(server->address());
  half.Send("GET / HTTP/1.1\r\n");
  Peer other(server->address());
  other.Send(LastGet("/"));
  EXPECT_THAT(other.ReadToEnd(), EndsWith("GET / []"));
  server->Drain(absl::ZeroDuration());
  EXPECT_EQ(half.ReadToEnd(), "");
}

}  // namespace
}  // namespace muster::queue_gateway::http
