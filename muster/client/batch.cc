// SPDX-License-Identifier: Apache-2.0
#include "muster/client/batch.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/client/upload_stream.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::client {

namespace {

constexpr absl::Duration kMinWait = absl::Milliseconds(100);
constexpr absl::Duration kMaxWait = absl::Seconds(2);
constexpr absl::Duration kTellAfter = absl::Seconds(1);

// A server that shuts down cancels its running calls, so Cancelled may pass, too.
bool MayPass(const absl::Status& trouble) {
  return absl::IsUnavailable(trouble) ||
         (absl::IsCancelled(trouble) && !rpc::Reason(trouble).has_value());
}

}  // namespace

absl::Status RetryBackoff::WaitAfter(const absl::Status& trouble, const std::stop_token& stop) {
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  const absl::Duration now = clock_->Monotonic();
  if (failures_ == 0) began_ = now;
  if (!MayPass(trouble) || now - began_ > patience_) return trouble;
  if (on_trouble_ && !told_ && now - began_ >= kTellAfter) {
    told_ = true;
    on_trouble_(trouble);
  }
  base::SleepUnlessStopped(clock_, base::ExponentialBackoff(++failures_, kMinWait, kMaxWait), stop);
  return stop.stop_requested() ? absl::CancelledError("stopped") : absl::OkStatus();
}

absl::StatusOr<v1::BatchStatus> Submit(const std::shared_ptr<grpc::Channel>& channel,
                                       const v1::SubmitHeader& header,
                                       const input::ByteSource& content,
                                       const SubmitOptions& options, base::Clock* clock,
                                       const std::stop_token& stop) {
  const auto stub = v1::BatchService::NewStub(channel);
  ContentHash hash(&content);
  RetryBackoff patience(options.patience, options.on_trouble, clock);
  std::atomic<uint64_t> number = 0;
  std::atomic<uint64_t> most_durable = 0;
  // Most batches are new. If this one is not, the initiator says so, and the next try asks first.
  for (bool at_once = true;; at_once = false) {
    std::atomic<bool> news = false;
    // A batch that was cancelled meanwhile is not begun anew behind its submitter's back.
    std::atomic<bool> is_another = false;
    UploadStream stream(stub.get(), &content, &hash,
                        [&](uint64_t batch, uint64_t durable, bool complete) {
                          uint64_t none = 0;
                          if (!number.compare_exchange_strong(none, batch) && none != batch) {
                            is_another = true;
                            return false;
                          }
                          // Not that the header is accepted once more: what comes behind it may
                          // fail each time.
                          if (none == 0 || durable > most_durable) news = true;
                          most_durable = std::max(most_durable.load(), durable);
                          if (options.on_progress)
                            options.on_progress({batch, durable, content.size(), complete});
                          return true;
                        });
    const absl::Status ended = stream.Run(header, at_once, stop);
    if (is_another) {
      return absl::CancelledError(absl::StrCat("batch ", number.load(), " was cancelled"));
    }
    if (ended.ok() && stream.sealed().has_value()) return *stream.sealed();
    if (at_once && absl::IsOutOfRange(ended)) continue;
    if (news) patience.Refresh();
    MUSTER_RETURN_IF_ERROR(patience.WaitAfter(
        ended.ok() ? absl::UnavailableError("the initiator ended the upload early") : ended, stop));
  }
}

bool IsOver(const v1::BatchStatus& status) {
  return status.state() == v1::BATCH_STATE_COMPLETE || status.state() == v1::BATCH_STATE_CANCELLED;
}

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
