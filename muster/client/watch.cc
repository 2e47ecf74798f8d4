#include "muster/client/watch.h"

#include <utility>

#include "muster/base/status_macros.h"
#include "muster/client/patience.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::client {
namespace {

bool IsOver(const v1::BatchStatus& status) {
  return status.state() == v1::BATCH_STATE_COMPLETE || status.state() == v1::BATCH_STATE_CANCELLED;
}

}  // namespace

absl::StatusOr<v1::BatchStatus> Watch(const std::shared_ptr<grpc::Channel>& channel, uint64_t batch,
                                      const WatchOptions& options, base::Clock* clock,
                                      const std::stop_token& stop) {
  const auto stub = v1::BatchService::NewStub(channel);
  RetryBackoff patience(options.patience, options.on_trouble, clock);
  v1::BatchStatus last;
  while (true) {
    grpc::ClientContext context;
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    v1::WatchBatchRequest request;
    request.set_batch(batch);
    request.set_after_revision(last.revision());
    const auto reader = stub->WatchBatch(&context, request);
    v1::WatchBatchResponse response;
    while (reader->Read(&response)) {
      patience.Refresh();
      last = std::move(*response.mutable_status());
      if (options.on_status) options.on_status(last);
    }
    const absl::Status ended = rpc::FromGrpc(reader->Finish());
    if (ended.ok() && IsOver(last)) return last;
    MUSTER_RETURN_IF_ERROR(patience.WaitAfter(
        ended.ok() ? absl::UnavailableError("the initiator ended the watch early") : ended, stop));
  }
}

}  // namespace muster::client
