// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/stream_service.h"

#include <memory>
#include <thread>
#include <vector>

#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/status.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/stream/memory_event_stream_store.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::api {
namespace {

// One read at a time may wait.
class StreamServiceTest : public ::testing::Test {
 protected:
  StreamServiceTest() { EXPECT_TRUE(events_.Create("homes", {.partitions = 1}).ok()); }

  absl::StatusOr<v1::ReadEventsResponse> Read(absl::Duration wait) {
    v1::ReadEventsRequest request;
    request.set_stream("homes");
    request.set_offset(1);
    *request.mutable_wait() = base::ToProto(wait);
    v1::ReadEventsResponse response;
    grpc::ServerContext context;
    MUSTER_RETURN_IF_ERROR(rpc::FromGrpc(service_.ReadEvents(&context, &request, &response)));
    return response;
  }

  stream::testing::MemoryEventStreamStore events_{base::RealClock()};
  sync::testing::MemorySyncStore sync_;
  StreamService service_{
      {.events = &events_, .sync = &sync_}, base::RealClock(), [] { return true; }, 1};
};

// Each read that waits holds a thread of the server: readers of a stream without news took them all
// from the other calls.
TEST_F(StreamServiceTest, LeavesTheThreadsToOthersWhileReadsWait) {
  std::thread waiting([this] {
    absl::StatusOr<v1::ReadEventsResponse> read = Read(absl::Seconds(10));
    for (; absl::IsUnavailable(read.status()); read = Read(absl::Seconds(10))) {
      base::LetOthersRun();
    }
    EXPECT_EQ(read.value().events_size(), 1);
  });
  while (!absl::IsUnavailable(Read(absl::Milliseconds(1)).status())) base::LetOthersRun();
  EXPECT_TRUE(Read(absl::ZeroDuration()).ok()) << "it does not wait";
  EXPECT_TRUE(events_.Append("homes", 0, {{.body = "x"}}).ok());
  waiting.join();
  EXPECT_TRUE(Read(absl::Seconds(10)).ok());
}

// 32 clients that said nothing had refused all others for as long as they liked.
TEST_F(StreamServiceTest, GivesThePlaceOfACallThatNeverSaysWhatItProcessesToAnother) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::StreamService::NewStub(server->InProcessChannel({}));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<
      grpc::ClientReaderWriter<v1::ProcessEventsRequest, v1::ProcessEventsResponse>>>
      silent;
  for (size_t i = 0; i < kProcessLimits.max_streams; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    silent.push_back(stub->ProcessEvents(contexts.back().get()));
  }
  // Refused as unsound by whoever has a place for it.
  const auto asks_for_nothing = [&] {
    grpc::ClientContext context;
    const auto call = stub->ProcessEvents(&context);
    call->Write(v1::ProcessEventsRequest());
    call->WritesDone();
    return rpc::FromGrpc(call->Finish());
  };
  while (!absl::IsUnavailable(asks_for_nothing())) base::LetOthersRun();
  while (!absl::IsInvalidArgument(asks_for_nothing())) base::LetOthersRun();
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& call : silent) call->Finish();
}

}  // namespace
}  // namespace muster::initiator::api
