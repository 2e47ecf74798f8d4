#include <future>
#include <memory>

#include "gtest/gtest.h"
#include "tests/fakes/rpc/rpc_fixture.h"

namespace muster::rpc {
namespace {

class DrainTest : public RpcTest {
 protected:
  // A call that runs until the test lets it go; its service has begun when this returns.
  std::future<absl::Status> CallThatRuns() {
    auto call = std::async(std::launch::async, [channel = Connect()] {
      CallContext context(kLong);
      v1::PurgePoisonResponse response;
      return FromGrpc(v1::QueueService::NewStub(channel)->PurgePoison(&context, {}, &response));
    });
    queues_.AwaitPurge();
    return call;
  }
};

TEST_F(DrainTest, LetsARunningCallFinishAndRefusesNewOnes) {
  Start();
  std::future<absl::Status> running = CallThatRuns();
  std::future<void> drain = std::async(std::launch::async, [&] { server_->Drain(kLong); });
  // Calls that come before it has begun are still answered. When it does, gRPC may cancel one.
  absl::Status refused;
  while (!absl::IsUnavailable(refused)) {
    refused = GetStats(Connect());
    EXPECT_TRUE(refused.ok() || absl::IsUnavailable(refused) || absl::IsCancelled(refused))
        << refused;
  }
  queues_.LetPurgeGo();
  drain.get();
  EXPECT_EQ(running.get(), absl::OkStatus());
}

TEST_F(DrainTest, CancelsWhatIsNotDoneWithinItsGrace) {
  Start();
  std::future<absl::Status> running = CallThatRuns();
  server_->Drain(absl::ZeroDuration());
  const absl::Status ended = running.get();
  EXPECT_TRUE(absl::IsCancelled(ended) || absl::IsUnavailable(ended)) << ended;
}

TEST_F(DrainTest, TwiceIsFine) {
  Start();
  server_->Drain(kLong);
  server_->Drain(absl::InfiniteDuration());
  server_.reset();
}

TEST_F(DrainTest, WaitsForOneThatHasBegun) {
  Start();
  std::future<absl::Status> running = CallThatRuns();
  std::future<void> first =
      std::async(std::launch::async, [&] { server_->Drain(absl::InfiniteDuration()); });
  std::future<void> second = std::async(std::launch::async, [&] { server_->Drain(kLong); });
  queues_.LetPurgeGo();
  first.get();
  second.get();
  EXPECT_EQ(running.get(), absl::OkStatus());
}

}  // namespace
}  // namespace muster::rpc
