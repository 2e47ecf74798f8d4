// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/metrics_server.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/process_limits.h"
#include "tests/fakes/telemetry/peer.h"

namespace muster::telemetry {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

class MetricsServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<MetricsServer> Start(MetricsServerOptions options = {}) {
    options.address = options.address.empty() ? "127.0.0.1:0" : options.address;
    auto started = MetricsServer::Start(options, [this](TextFormat format) -> std::string {
      if (format == TextFormat::kOpenMetrics) return "# EOF\n";
      return ++pages_ == 1 ? first_page_ : "muster_up 1\n";
    });
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  // With one thread, a peer that is not cut off keeps the others waiting for good.
  std::unique_ptr<MetricsServer> StartImpatient() {
    MetricsServerOptions options;
    options.threads = 1;
    options.request_patience = absl::Milliseconds(100);
    options.answer_patience = absl::Milliseconds(100);
    return Start(options);
  }

  std::string first_page_ = "muster_up 1\n";  // set before the server starts
  std::atomic<int> pages_ = 0;
};

TEST_F(MetricsServerTest, AnswersThePageAsText) {
  const auto server = Start();
  EXPECT_THAT(Peer(server->address()).Ask(kGet),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                    HasSubstr("\r\nContent-Length: 12\r\n"), EndsWith("\r\n\r\nmuster_up 1\n")));
}

TEST_F(MetricsServerTest, AnswersOpenMetricsToWhoTakesIt) {
  const auto server = Start();
  EXPECT_THAT(Peer(server->address())
                  .Ask("GET /metrics HTTP/1.1\r\nHost: here\r\n"
                       "Accept: application/openmetrics-text;version=1.0.0,text/plain\r\n\r\n"),
              AllOf(HasSubstr("\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
                              "charset=utf-8\r\n"),
                    EndsWith("\r\n\r\n# EOF\n")));
}

TEST_F(MetricsServerTest, AnswersHeadWithoutThePage) {
  const auto server = Start();
  EXPECT_THAT(Peer(server->address()).Ask("HEAD /metrics HTTP/1.1\r\nHost: here\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(MetricsServerTest, TellsProbesWhetherTheProcessIsReadyAndWhyNot) {
  constexpr char kHealth[] = "GET /healthz HTTP/1.0\r\n\r\n";
  constexpr char kReady[] = "GET /readyz HTTP/1.0\r\n\r\n";
  const auto server = Start();
  EXPECT_THAT(Peer(server->address()).Ask(kReady),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\nready\n")));
  MetricsServerOptions options;
  options.readiness = [] { return absl::UnavailableError("it waits for\nits queues"); };
  const auto waiting = Start(options);
  EXPECT_THAT(Peer(waiting->address()).Ask(kHealth),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\nalive\n")));
  const std::string answer = Peer(waiting->address()).Ask(kReady);
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("it waits for")));
  EXPECT_EQ(answer.find('\n', answer.find("\r\n\r\n") + 4), answer.size() - 1) << "one line";
}

TEST_F(MetricsServerTest, RefusesOtherPathsAndMethods) {
  const auto server = Start();
  for (const char* path : {"/", "/metric", "/metrics/x", "/../etc/passwd"}) {
    EXPECT_THAT(Peer(server->address()).Ask(absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n")),
                testing::Not(HasSubstr(" 200 ")))
        << path;
  }
  EXPECT_THAT(Peer(server->address()).Ask("GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Peer(server->address()).Ask("DELETE /metrics HTTP/1.0\r\n\r\n"),
              StartsWith("HTTP/1.1 405 "));
}

TEST_F(MetricsServerTest, SaysThatThePortIsInUse) {
  const auto first = Start();
  const auto second = MetricsServer::Start({first->address()}, [](TextFormat) { return ""; });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(),
              AllOf(HasSubstr(first->address()), HasSubstr("Address already in use")));
}

TEST_F(MetricsServerTest, CutsOffAPeerThatDoesNotRead) {
  first_page_ = std::string(size_t{32} << 20, '#');  // more than the buffers of two sockets take
  const auto server = StartImpatient();
  Peer slow(server->address(), 4096);
  slow.Send(kGet);
  EXPECT_THAT(Peer(server->address()).Ask(kGet), EndsWith("muster_up 1\n"))
      << "it has its thread again";
  EXPECT_LT(slow.ReadToEnd().size(), size_t{32} << 20);
}

TEST_F(MetricsServerTest, CutsOffAPeerThatAsksNothing) {
  const auto server = StartImpatient();
  const Peer silent(server->address());
  Peer half(server->address());
  half.Send("GET /metrics HTT");
  EXPECT_THAT(Peer(server->address()).Ask(kGet), EndsWith("muster_up 1\n"));
}

// Port scanners, and probes that only connect.
TEST_F(MetricsServerTest, AnswersWhileManyPeersAskNothing) {
  const auto server = Start();
  std::vector<std::unique_ptr<Peer>> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(std::make_unique<Peer>(server->address()));
  Peer scrape(server->address());
  scrape.GiveUpAfter(absl::Seconds(10));  // as Prometheus does
  EXPECT_THAT(scrape.Ask(kGet), EndsWith("muster_up 1\n"));
}

TEST_F(MetricsServerTest, AnswersManyPeersOneAfterTheOther) {
  const auto server = Start();
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 3 * kServerThreads; ++i)
    peers.push_back(std::make_unique<Peer>(server->address()));
  for (const auto& peer : peers) peer->Send(kGet);
  for (const auto& peer : peers) EXPECT_THAT(peer->ReadToEnd(), EndsWith("muster_up 1\n"));
}

// What finds no place in the queues of the server and the kernel is tried again by the kernel.
TEST_F(MetricsServerTest, AnswersAThousandScrapesAtOnce) {
  constexpr int kScrapes = 1000;
  ASSERT_GE(os::RaiseDescriptorLimit(3 * kScrapes), 2 * kScrapes + 100);
  const auto server = Start();
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < kScrapes; ++i) {
    peers.push_back(std::make_unique<Peer>(server->address()));
    peers.back()->Send(kGet);
  }
  for (const auto& peer : peers) EXPECT_THAT(peer->ReadToEnd(), EndsWith("muster_up 1\n"));
  EXPECT_EQ(pages_, kScrapes);
}

TEST_F(MetricsServerTest, StopsWithAPeerThatIsConnected) {
  auto server = Start();
  const std::string address = server->address();
  Peer silent(address);
  server.reset();
  // The peer may stay connected: civetweb forgets a connection that no thread has taken yet.
  EXPECT_NE(Start({.address = address}), nullptr) << "the address is free";
}

}  // namespace
}  // namespace muster::telemetry
