// SPDX-License-Identifier: Apache-2.0

// The base of server tests: a service whose methods behave as a test needs, and a server for it on
// loopback.
#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/v1/queue_service.grpc.pb.h"

namespace muster::rpc {

// GetQueueStats returns at once: `answer` for the first `answered_so` calls, then OK. PurgePoison
// waits until the test lets it go, or its call is cancelled. ListQueues returns a page whose size
// in bytes is the account's name.
class TestQueues final : public v1::QueueService::Service {
 public:
  // Set these before the server starts, or between calls.
  absl::Status answer;
  int answered_so = std::numeric_limits<int>::max();  // calls
  base::Clock* clock = base::RealClock();             // the clock of GetQueueStats

  int stats_calls() const { return stats_calls_; }

  grpc::Status GetQueueStats(grpc::ServerContext* context, const v1::GetQueueStatsRequest*,
                             v1::GetQueueStatsResponse* response) override {
    return Answer(
        *context,
        [&] {
          response->mutable_stats()->set_ready(7);
          return ++stats_calls_ <= answered_so ? answer : absl::OkStatus();
        },
        clock);
  }

  grpc::Status ListQueues(grpc::ServerContext* context, const v1::ListQueuesRequest* request,
                          v1::ListQueuesResponse* response) override {
    return Answer(*context, [&] {
      response->set_next_page_token(std::string(std::stoul(request->account()), 'x'));
      return absl::OkStatus();
    });
  }

  grpc::Status PurgePoison(grpc::ServerContext* context, const v1::PurgePoisonRequest*,
                           v1::PurgePoisonResponse* response) override {
    return Answer(*context, [&] {
      base::MutexLock lock(&mu_);
      waiting_ = true;
      changed_.NotifyAll();
      // gRPC does not signal a cancellation here, so the thread polls.
      while (!released_ && !context->IsCancelled()) {
        changed_.WaitUntil(&mu_, std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
      }
      response->set_purged(1);
      return released_ ? absl::OkStatus() : absl::CancelledError("nobody waits any more");
    });
  }

  void AwaitPurge() {
    base::MutexLock lock(&mu_);
    while (!waiting_) changed_.Wait(&mu_);
  }
  void LetPurgeGo() {
    base::MutexLock lock(&mu_);
    released_ = true;
    changed_.NotifyAll();
  }

 private:
  std::atomic<int> stats_calls_{0};
  base::Mutex mu_;
  base::CondVar changed_;
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;
  bool released_ ABSL_GUARDED_BY(mu_) = false;
};

class RpcTest : public ::testing::Test {
 protected:
  // Even the slowest machine makes any call in less time.
  static constexpr absl::Duration kLong = absl::Minutes(2);

  absl::Status TryStart(ServerOptions options = {}) {
    if (options.addresses.empty()) options.addresses = {"localhost:0"};
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(options, {{v1::QueueService::service_full_name(), &queues_}});
    if (server.ok()) server_ = *std::move(server);
    return server.status();
  }
  void Start(const ServerOptions& options = {}) {
    const absl::Status started = TryStart(options);
    ASSERT_TRUE(started.ok()) << started;
  }

  // Connects to the first address. A failed call is not tried again.
  std::shared_ptr<grpc::Channel> Connect(ChannelOptions options = {}) {
    options.retry_unavailable = false;
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
        OpenChannel(server_->addresses().front(), options);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *channel;
  }

  static absl::Status GetStats(const std::shared_ptr<grpc::Channel>& channel) {
    CallContext context(kLong);
    v1::GetQueueStatsResponse response;
    const grpc::Status status =
        v1::QueueService::NewStub(channel)->GetQueueStats(&context, {}, &response);
    EXPECT_TRUE(!status.ok() || response.stats().ready() == 7);
    return FromGrpc(status);
  }

  TestQueues queues_;  // outlives the server
  std::unique_ptr<Server> server_;
};

}  // namespace muster::rpc
