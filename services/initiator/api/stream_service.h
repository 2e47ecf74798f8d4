// SPDX-License-Identifier: Apache-2.0

// StreamService: makes, feeds and reads an initiator's event streams
// (proto/muster/v1/stream_service.proto).
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <utility>

#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/stream_limiter.h"
#include "muster/stream/event_stream_store.h"
#include "muster/stream/processor/replay.h"
#include "muster/v1/stream_service.grpc.pb.h"
#include "services/initiator/api/processed_streams.h"

namespace muster::initiator::api {

// Reads at a time that may wait for events.
inline constexpr int kMaxWaitingReads = rpc::kMaxCallThreads / 8;

// Calls of ProcessEvents: each has the threads of a processor. One that does not say what it wants
// to process gives its place away.
inline constexpr rpc::StreamLimits kProcessLimits = {
    .max_streams = 32,
    .max_idle = absl::Seconds(30),
    .yields_after = absl::Seconds(1),
};

// Thread-safe. A read that waits holds a thread of the server for 10 s at most; a call of
// ProcessEvents holds one, and those of an EventProcessor, while it lives.
class StreamService final : public v1::StreamService::Service {
 public:
  // None of the pointers is owned; all outlive the service. `sync` holds the groups' checkpoints.
  // `metrics` may be null. `is_connected`: the stores answer now.
  StreamService(const stream::processor::ProcessorStores& stores, base::Clock* clock,
                std::function<bool()> is_connected, int max_waiting_reads = kMaxWaitingReads)
      : streams_(stores.events),
        stores_(stores),
        clock_(clock),
        max_waiting_reads_(max_waiting_reads),
        processed_(streams_, std::move(is_connected), clock, stores.metrics) {}

  grpc::Status CreateStream(grpc::ServerContext* context, const v1::CreateStreamRequest* request,
                            v1::CreateStreamResponse* response) override;
  grpc::Status ListStreams(grpc::ServerContext* context, const v1::ListStreamsRequest* request,
                           v1::ListStreamsResponse* response) override;
  grpc::Status GetStream(grpc::ServerContext* context, const v1::GetStreamRequest* request,
                         v1::GetStreamResponse* response) override;
  grpc::Status DeleteStream(grpc::ServerContext* context, const v1::DeleteStreamRequest* request,
                            v1::DeleteStreamResponse* response) override;
  grpc::Status AppendEvents(grpc::ServerContext* context, const v1::AppendEventsRequest* request,
                            v1::AppendEventsResponse* response) override;
  grpc::Status ReadEvents(grpc::ServerContext* context, const v1::ReadEventsRequest* request,
                          v1::ReadEventsResponse* response) override;
  grpc::Status ProcessEvents(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ProcessEventsResponse, v1::ProcessEventsRequest>* call) override
      ABSL_LOCKS_EXCLUDED(mu_);
  grpc::Status ReplayPartition(grpc::ServerContext* context,
                               const v1::ReplayPartitionRequest* request,
                               v1::ReplayPartitionResponse* response) override;

  // Ends all calls of ProcessEvents, and refuses new ones: their callers call another initiator.
  void StopProcessing() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  stream::EventStreamStore* const streams_;  // not owned
  const stream::processor::ProcessorStores stores_;
  base::Clock* const clock_;  // not owned
  const int max_waiting_reads_;
  std::atomic<int> waiting_reads_{0};
  ProcessedStreams processed_;
  rpc::StreamLimiter process_calls_{"processors of events", kProcessLimits, clock_};
  base::Mutex mu_;
  std::set<grpc::ServerContext*> processing_ ABSL_GUARDED_BY(mu_);  // not owned
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster::initiator::api
