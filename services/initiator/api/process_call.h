// SPDX-License-Identifier: Apache-2.0

// ProcessCall: one call of StreamService.ProcessEvents: an event processor whose handler is at the
// other end of the call.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/stream_limiter.h"
#include "muster/stream/processor/event_processor.h"
#include "muster/v1/stream_service.grpc.pb.h"
#include "services/initiator/api/processed_streams.h"

namespace muster::initiator::api {

// Thread-safe; has the threads of its EventProcessor, and one that waits for its end. A handler
// thread waits for the caller's answer, so at most one event of a partition is on its way.
class ProcessCall final : private stream::processor::EventHandler {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ProcessEventsResponse, v1::ProcessEventsRequest>;

  // Messages for one partition that may wait: an event has one answer, and few checkpoints.
  static constexpr size_t kMaxWaiting = 16;

  // `stores` and the pointers are not owned. The call waits at `place` until the caller has said
  // what it wants to process.
  ProcessCall(const stream::processor::ProcessorStores& stores, ProcessedStreams* processed,
              base::Clock* clock, rpc::StreamLimiter::Place* place, Stream* call)
      : stores_(stores), processed_(processed), clock_(clock), place_(place), call_(call) {}

  // Returns when the caller has ended the call, has gone or has erred, and all partitions are
  // closed.
  absl::Status Run();

 private:
  absl::Status OnEvent(stream::processor::PartitionContext& partition,
                       const stream::Event* event) override;
  void OnError(const stream::processor::ProcessorError& error) override;
  void OnPartitionInitializing(stream::processor::PartitionContext& partition) override;
  void OnPartitionClosing(stream::processor::PartitionContext& partition,
                          stream::processor::CloseReason reason) override;

  absl::Status Hear(stream::processor::EventProcessor* processor);
  void TellEnd(const absl::Status& status);
  // Puts what the caller says where its partition's thread waits for it.
  absl::Status Deliver(v1::ProcessEventsRequest request);
  // Carries out the caller's checkpoints until it has handled what it was sent.
  absl::Status AwaitHandled(stream::processor::PartitionContext& partition);
  // nullopt: the caller has gone.
  std::optional<v1::ProcessEventsRequest> Await(int partition);
  void SaveCheckpoint(stream::processor::PartitionContext& partition, int64_t offset);
  void Send(const v1::ProcessEventsResponse& response);
  void HangUp();

  const stream::processor::ProcessorStores stores_;
  ProcessedStreams* const processed_;       // not owned
  base::Clock* const clock_;                // not owned
  rpc::StreamLimiter::Place* const place_;  // not owned
  Stream* const call_;                      // not owned
  base::Mutex write_mu_;                    // one write at a time
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<int, std::deque<v1::ProcessEventsRequest>> waiting_ ABSL_GUARDED_BY(mu_);
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster::initiator::api
