// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/channel.h"

#include <atomic>
#include <memory>

#include "gtest/gtest.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/server.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "tests/fakes/rpc/rpc_fixture.h"

namespace muster::rpc {
namespace {

class ChannelTest : public RpcTest {
 protected:
  absl::Status GetStatsPatiently() { return GetStats(*OpenChannel(server_->addresses().front())); }
};

TEST_F(ChannelTest, TriesAgainWhatIsUnavailable) {
  queues_.answer = absl::UnavailableError("not now");
  queues_.answered_so = 2;
  Start();
  EXPECT_EQ(GetStatsPatiently(), absl::OkStatus());
  EXPECT_EQ(queues_.stats_calls(), 3);
}

TEST_F(ChannelTest, GivesUpAfterSomeTries) {
  queues_.answer = absl::UnavailableError("not now");
  Start();
  EXPECT_EQ(GetStatsPatiently(), WithAdvice(queues_.answer));
  EXPECT_EQ(queues_.stats_calls(), kMaxCallAttempts);
}

TEST_F(ChannelTest, TriesNothingElseAgain) {
  queues_.answer = absl::ResourceExhaustedError("throttled");
  Start();
  EXPECT_EQ(GetStatsPatiently(), WithAdvice(queues_.answer));
  EXPECT_EQ(queues_.stats_calls(), 1);
}

TEST_F(ChannelTest, TriesNothingAgainWhenItIsToldSo) {
  queues_.answer = absl::UnavailableError("not now");
  Start();
  EXPECT_EQ(GetStats(Connect()), WithAdvice(queues_.answer));
  EXPECT_EQ(queues_.stats_calls(), 1);
}

// An upload that was refused hung for minutes: gRPC tried it again without its content.
TEST_F(ChannelTest, LeavesAStreamOfRequestsToItsCaller) {
  std::atomic<int> calls = 0;
  ServerOptions options;
  options.otherwise = [&calls] {
    ++calls;
    return absl::UnavailableError("not now");
  };
  Start(options);
  CallContext context(kLong);
  const auto stub = v1::BatchService::NewStub(*OpenChannel(server_->addresses().front()));
  const auto stream = stub->Submit(&context);
  stream->Write({});
  EXPECT_TRUE(absl::IsUnavailable(FromGrpc(stream->Finish())));
  EXPECT_EQ(calls, 1);
}

TEST_F(ChannelTest, GivesEveryCallADeadline) {
  const CallContext context;
  EXPECT_LE(absl::FromChrono(context.deadline()), absl::Now() + kDefaultCallTimeout);
  EXPECT_GT(absl::FromChrono(context.deadline()), absl::Now());
}

TEST_F(ChannelTest, RefusesAnAddressThatIsNone) {
  EXPECT_EQ(OpenChannel("localhost").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ChannelTest, RefusesRootsThatAreNotThere) {
  ChannelOptions options;
  options.tls = TlsFiles{"", "", "/nowhere/roots.pem", kCertificateRefresh};
  EXPECT_EQ(OpenChannel("localhost:1", options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::rpc
