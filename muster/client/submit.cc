#include "muster/client/submit.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/client/patience.h"
#include "muster/client/upload_stream.h"
#include "muster/v1/batch_service.grpc.pb.h"

namespace muster::client {

absl::StatusOr<v1::BatchStatus> Submit(const std::shared_ptr<grpc::Channel>& channel,
                                       const v1::SubmitHeader& header,
                                       const input::ByteSource& content,
                                       const SubmitOptions& options, base::Clock* clock,
                                       const std::stop_token& stop) {
  const auto stub = v1::BatchService::NewStub(channel);
  ContentHash hash(&content);
  RetryBackoff patience(options.patience, options.on_trouble, clock);
  std::atomic<uint64_t> number = 0;
  // Most batches are new. Of one that is not, the initiator says so, and is then asked first.
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
                          news = true;
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

}  // namespace muster::client
