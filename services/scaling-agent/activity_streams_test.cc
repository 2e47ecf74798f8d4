// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/activity_streams.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::scaling_agent {
namespace {

using externalscaler::ExternalScaler;
using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;

// Serves the streams and nothing else, on loopback.
class StreamServer final
    : public ExternalScaler::WithCallbackMethod_StreamIsActive<ExternalScaler::Service> {
 public:
  // With a leader, each stream is a relay of one of the leader's.
  explicit StreamServer(size_t most = kMaxActivityStreams,
                        std::shared_ptr<ExternalScaler::Stub> leader = nullptr)
      : streams_(&clock_, most), leader_(std::move(leader)) {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    auto started = rpc::Server::Start(options, {{ExternalScaler::service_full_name(), this}});
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  ~StreamServer() override { Stop(); }

  ActivityStreams::Reactor* StreamIsActive(grpc::CallbackServerContext*,
                                           const ScaledObjectRef* request) override {
    if (leader_ != nullptr) return streams_.Relay(leader_, *request);
    return streams_.Follow(request->scalermetadata().at("target"));
  }

  // Tries nothing again, as KEDA does.
  std::shared_ptr<ExternalScaler::Stub> stub() const {
    rpc::ChannelOptions options;
    options.retry_unavailable = false;
    return ExternalScaler::NewStub(*rpc::OpenChannel(server_->addresses().front(), options));
  }
  ActivityStreams& streams() { return streams_; }
  base::FakeClock& clock() { return clock_; }
  void Stop() { server_->Drain(absl::ZeroDuration()); }
  void AwaitOpen(size_t count) const {
    while (streams_.open() != count) base::LetOthersRun();
  }

 private:
  base::FakeClock clock_;
  ActivityStreams streams_;
  const std::shared_ptr<ExternalScaler::Stub> leader_;
  std::unique_ptr<rpc::Server> server_;
};

// A client of one stream.
class Client {
 public:
  Client(const StreamServer& server, const std::string& target) : stub_(server.stub()) {
    ScaledObjectRef request;
    (*request.mutable_scalermetadata())["target"] = target;
    context_.set_wait_for_ready(true);
    reader_ = stub_->StreamIsActive(&context_, request);
  }

  // nullopt: the stream has ended.
  std::optional<bool> Next() {
    IsActiveResponse response;
    if (!reader_->Read(&response)) return std::nullopt;
    return response.result();
  }
  absl::Status End() {
    EXPECT_EQ(Next(), std::nullopt);
    return rpc::FromGrpc(reader_->Finish());
  }
  void Leave() { context_.TryCancel(); }

 private:
  const std::shared_ptr<ExternalScaler::Stub> stub_;
  rpc::CallContext context_{absl::Minutes(2)};
  std::unique_ptr<grpc::ClientReader<IsActiveResponse>> reader_;
};

TEST(ActivityStreamsTest, TellsWhatIsKnownAndThenEachChange) {
  StreamServer server;
  server.streams().Update("billing", 0);
  Client client(server, "billing");
  EXPECT_EQ(client.Next(), false);
  server.streams().Update("billing", 3);
  EXPECT_EQ(client.Next(), true);
  server.streams().Update("billing", 2);
  server.streams().Update("other", 0);
  server.streams().Update("billing", 0);
  EXPECT_EQ(client.Next(), false);
}

TEST(ActivityStreamsTest, TellsNothingBeforeTheFirstDecision) {
  StreamServer server;
  Client client(server, "billing");
  server.AwaitOpen(1);
  server.streams().Update("billing", 1);
  EXPECT_EQ(client.Next(), true);
}

// KEDA drops a "true" that comes before it has made the HPA.
TEST(ActivityStreamsTest, SaysAgainThatThereShallBeReplicas) {
  StreamServer server;
  server.streams().Update("billing", 1);
  Client client(server, "billing");
  EXPECT_EQ(client.Next(), true);
  for (int i = 0; i < 3; ++i) {
    server.clock().Advance(kActivityRepeat);
    server.streams().Update("billing", 2);
    EXPECT_EQ(client.Next(), true);
  }
  server.clock().Advance(kActivityRepeat - absl::Seconds(1));
  server.streams().Update("billing", 1);
  server.streams().Update("billing", 0);
  EXPECT_EQ(client.Next(), false) << "too early to say it again";
  server.clock().Advance(2 * kActivityRepeat);
  server.streams().Update("billing", 0);
  server.streams().Update("billing", 1);
  EXPECT_EQ(client.Next(), true) << "that there shall be none is said once";
}

// KEDA waits longer and longer after errors.
TEST(ActivityStreamsTest, EndsWithOkWhenTheAgentDecidesNoMore) {
  StreamServer server;
  server.streams().Update("billing", 1);
  Client client(server, "billing");
  EXPECT_EQ(client.Next(), true);
  server.streams().Update("billing", std::nullopt);
  EXPECT_TRUE(client.End().ok());
  server.AwaitOpen(0);
}

TEST(ActivityStreamsTest, EndsWithOkAlsoWhenItCouldTellNothing) {
  StreamServer server;
  Client client(server, "billing");
  server.AwaitOpen(1);
  server.streams().Update("billing", std::nullopt);
  EXPECT_TRUE(client.End().ok());
}

TEST(ActivityStreamsTest, DrainEndsEachStreamAndRefusesNewOnes) {
  StreamServer server;
  server.streams().Update("billing", 1);
  Client told(server, "billing");
  EXPECT_EQ(told.Next(), true);
  Client waiting(server, "other");
  server.AwaitOpen(2);
  server.streams().Drain();
  EXPECT_TRUE(told.End().ok());
  EXPECT_TRUE(waiting.End().ok());
  EXPECT_TRUE(Client(server, "billing").End().ok());
  server.AwaitOpen(0);
}

TEST(ActivityStreamsTest, TheServerEndsWhileAStreamIsOpen) {
  StreamServer server;
  Client client(server, "billing");
  server.AwaitOpen(1);
  server.Stop();
  EXPECT_FALSE(client.End().ok());
  server.AwaitOpen(0);
}

TEST(ActivityStreamsTest, AClientThatLeavesFreesItsPlace) {
  StreamServer server(1);
  server.streams().Update("billing", 1);
  auto first = std::make_unique<Client>(server, "billing");
  EXPECT_EQ(first->Next(), true);
  EXPECT_TRUE(absl::IsResourceExhausted(Client(server, "billing").End()));
  first->Leave();
  server.AwaitOpen(0);
  Client second(server, "billing");
  EXPECT_EQ(second.Next(), true);
}

TEST(ActivityStreamsTest, ManyChangesEndWithTheLastOne) {
  StreamServer server;
  server.streams().Update("billing", 0);
  Client client(server, "billing");
  EXPECT_EQ(client.Next(), false);
  for (int i = 0; i < 1000; ++i) server.streams().Update("billing", i % 2);
  server.streams().Update("billing", std::nullopt);
  std::optional<bool> last, next;
  while ((next = client.Next()).has_value()) {
    EXPECT_NE(next, last) << "it says nothing twice";
    last = next;
  }
}

class RelayTest : public ::testing::Test {
 protected:
  StreamServer leader_;
  StreamServer follower_{kMaxActivityStreams, leader_.stub()};
};

TEST_F(RelayTest, PassesOnWhatTheLeaderTells) {
  leader_.streams().Update("billing", 0);
  Client client(follower_, "billing");
  EXPECT_EQ(client.Next(), false);
  leader_.streams().Update("billing", 1);
  EXPECT_EQ(client.Next(), true);
}

TEST_F(RelayTest, EndsWithTheLeadersStream) {
  leader_.streams().Update("billing", 0);
  Client client(follower_, "billing");
  EXPECT_EQ(client.Next(), false);
  leader_.streams().Update("billing", std::nullopt);
  EXPECT_TRUE(client.End().ok());
  follower_.AwaitOpen(0);
}

TEST_F(RelayTest, EndsWithOkWhenTheLeaderIsGone) {
  leader_.streams().Update("billing", 0);
  Client client(follower_, "billing");
  EXPECT_EQ(client.Next(), false);
  leader_.Stop();
  EXPECT_TRUE(client.End().ok());
}

TEST_F(RelayTest, EndsWithOkWhenTheLeaderStops) {
  leader_.streams().Drain();
  EXPECT_TRUE(Client(follower_, "billing").End().ok());
  leader_.Stop();
  EXPECT_TRUE(Client(follower_, "billing").End().ok());
}

TEST_F(RelayTest, SaysAgainWhatTheLeaderSaysAgain) {
  leader_.streams().Update("billing", 1);
  Client client(follower_, "billing");
  EXPECT_EQ(client.Next(), true);
  leader_.clock().Advance(kActivityRepeat);
  leader_.streams().Update("billing", 1);
  EXPECT_EQ(client.Next(), true);
}

TEST(ActivityStreamsTest, ARelayEndsWithTheErrorOfALeaderThatIsFull) {
  StreamServer leader(0);
  StreamServer follower(kMaxActivityStreams, leader.stub());
  EXPECT_TRUE(absl::IsResourceExhausted(Client(follower, "billing").End()));
}

TEST_F(RelayTest, TheLeadersStreamEndsWhenTheClientLeaves) {
  leader_.streams().Update("billing", 0);
  Client client(follower_, "billing");
  EXPECT_EQ(client.Next(), false);
  client.Leave();
  follower_.AwaitOpen(0);
  leader_.AwaitOpen(0);
}

// A write that fails must not end the relay before its upstream, which uses it.
TEST_F(RelayTest, AClientLeavesWhileChangesStream) {
  for (int round = 0; round < 50; ++round) {
    leader_.streams().Update("billing", 0);
    Client client(follower_, "billing");
    EXPECT_EQ(client.Next(), false);
    std::thread leaving([&client] { client.Leave(); });
    for (int i = 0; i < 100; ++i) leader_.streams().Update("billing", i % 2);
    leaving.join();
    follower_.AwaitOpen(0);
    leader_.AwaitOpen(0);
  }
}

TEST_F(RelayTest, DrainEndsARelay) {
  leader_.streams().Update("billing", 0);
  Client client(follower_, "billing");
  EXPECT_EQ(client.Next(), false);
  follower_.streams().Drain();
  EXPECT_TRUE(client.End().ok());
  leader_.AwaitOpen(0);
}

}  // namespace
}  // namespace muster::scaling_agent
