// SPDX-License-Identifier: Apache-2.0

// More streams than an initiator has threads: its other calls go on.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "muster/rpc/limits.h"
#include "muster/v1/batch.pb.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

constexpr int kStreams = rpc::kMaxCallThreads + 88;

class ManyStreamsTest : public BatchServiceTest {
 protected:
  // The stub for stream `i`: a server takes only so many calls on each connection.
  v1::BatchService::Stub* StubFor(int i) {
    if (i % rpc::kMaxStreamsPerConnection == 0) {
      grpc::ChannelArguments own;
      own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(v1::BatchService::NewStub(grpc::CreateCustomChannel(
          server_->addresses().front(), grpc::InsecureChannelCredentials(), own)));
    }
    return stubs_.back().get();
  }

  absl::Status GetBatch(uint64_t batch) {
    rpc::CallContext context;
    v1::GetBatchRequest request;
    request.set_batch(batch);
    v1::GetBatchResponse response;
    return rpc::FromGrpc(stub_->GetBatch(&context, request, &response));
  }

  std::vector<std::unique_ptr<v1::BatchService::Stub>> stubs_;
};

struct OpenWatch {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchBatchResponse>> stream;
};

TEST_F(ManyStreamsTest, TellsMoreWatchersThanItHasThreadsUntilTheirBatchIsComplete) {
  const auto submitted = Submit("watched", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  v1::WatchBatchRequest request;
  request.set_batch(submitted->batch());
  v1::WatchBatchResponse response;
  std::vector<std::unique_ptr<OpenWatch>> watches;
  for (int i = 0; i < kStreams; ++i) {
    watches.push_back(std::make_unique<OpenWatch>());
    OpenWatch& watch = *watches.back();
    watch.stream = StubFor(i)->WatchBatch(&watch.context, request);
    ASSERT_TRUE(watch.stream->Read(&response))
        << "watcher " << i << ": " << rpc::FromGrpc(watch.stream->Finish());
  }
  EXPECT_EQ(GetBatch(submitted->batch()), absl::OkStatus());
  StartProcessor();
  for (const auto& watch : watches) {
    while (watch->stream->Read(&response)) continue;
    EXPECT_EQ(rpc::FromGrpc(watch->stream->Finish()), absl::OkStatus());
    EXPECT_TRUE(response.status().complete());
  }
}

TEST_F(ManyStreamsTest, ComputesNewsOnceForAllThatWatchABatch) {
  constexpr int kWatchers = 200;
  const auto submitted = Submit("watched", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  AwaitQueued(submitted->batch(), 5);
  v1::WatchBatchRequest request;
  request.set_batch(submitted->batch());
  v1::WatchBatchResponse response;
  std::vector<std::unique_ptr<OpenWatch>> watches;
  for (int i = 0; i < kWatchers; ++i) {
    watches.push_back(std::make_unique<OpenWatch>());
    watches.back()->stream = StubFor(i)->WatchBatch(&watches.back()->context, request);
    ASSERT_TRUE(watches.back()->stream->Read(&response));
  }
  // The status of a batch that is over costs one question to the report.
  const int asked = report_client_->progress_asked();
  ASSERT_TRUE(scheduler_->Cancel(submitted->batch(), "enough").ok());
  for (const auto& watch : watches) {
    while (watch->stream->Read(&response)) continue;
    EXPECT_EQ(rpc::FromGrpc(watch->stream->Finish()), absl::OkStatus());
    EXPECT_EQ(response.status().state(), v1::BATCH_STATE_CANCELLED);
  }
  EXPECT_LT(report_client_->progress_asked() - asked, kWatchers);
}

TEST_F(ManyStreamsTest, SubmitsABatchWhileMoreUploadsIdleThanItHasThreads) {
  std::vector<std::unique_ptr<Upload>> uploads;
  for (int i = 0; i < kStreams; ++i) {
    uploads.push_back(std::make_unique<Upload>(StubFor(i)));
    uploads.back()->SendHeader(Header(absl::StrCat("idle ", i)));
  }
  // Each is accepted or refused.
  for (const auto& upload : uploads) (void)upload->Hear();
  const auto submitted = Submit("at work", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(GetBatch(submitted->batch()), absl::OkStatus());
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->transactions(), 100);
}

}  // namespace
}  // namespace muster
