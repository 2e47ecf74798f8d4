// SubmitCall: one stream of BatchService.Submit, from its header to its seal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/batch/uploads.h"
#include "services/initiator/submit/submissions.h"

namespace muster::initiator::api {

// One thread reads, another one syncs and answers `durable`.
class SubmitCall {
 public:
  using Stream = grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>;

  // Nothing is owned.
  SubmitCall(initiator::submit::Submissions* submissions,
             initiator::batch::BatchScheduler* scheduler, initiator::batch::Uploads* uploads,
             base::Clock* clock, grpc::ServerContext* context, Stream* stream)
      : submissions_(submissions),
        scheduler_(scheduler),
        uploads_(uploads),
        clock_(clock),
        context_(context),
        stream_(stream) {}
  ~SubmitCall();
  SubmitCall(const SubmitCall&) = delete;
  SubmitCall& operator=(const SubmitCall&) = delete;

  // Reads until the seal is answered, or something is wrong. Cancelled: the client went away.
  // `batch` is the batch that was sealed.
  absl::Status Run();

  // What Run has sealed.
  uint64_t batch() const { return batch_.number; }

 private:
  // All that the header's sender sends comes behind it.
  absl::Status TakeAtOnce(const v1::SubmitHeader& header);
  absl::Status TakePieces(const v1::SubmitHeader& header);
  absl::Status CheckCancelled() const;
  // Answers the header of batch_.
  absl::Status Accept();
  // Finds batch_'s upload, to go on with it.
  absl::Status TakeOver();
  void BeginToSync();
  // What is written to the stream from here on is not `durable`; the seal syncs what is left.
  absl::Status EndSyncing();
  absl::Status Take(const v1::SubmitChunk& chunk);
  absl::Status Seal(const v1::SubmitSeal& seal);
  // What a writer is answered whom the upload refused, in words that name the batch.
  absl::Status Explained(absl::Status refused) const;
  // Nobody can go on with the upload.
  absl::Status Drop(absl::Status why);
  absl::Status Send(const v1::SubmitResponse& response);
  // What is sealed is what was recorded of content that has no upload.
  absl::Status CheckRecorded(const v1::SubmitSeal& seal, const base::Fingerprint128& hash) const;
  uint64_t RecordedSize() const;
  // Where the content ends: the upload's, or what is recorded where that is gone.
  uint64_t SizeSoFar() const;
  uint64_t DurableSize() const;

  initiator::submit::Submissions* const submissions_;  // not owned
  initiator::batch::BatchScheduler* const scheduler_;  // not owned
  initiator::batch::Uploads* const uploads_;           // not owned
  base::Clock* const clock_;                           // not owned
  grpc::ServerContext* const context_;                 // not owned
  Stream* const stream_;                               // not owned
  ledger::Batch batch_;
  std::shared_ptr<initiator::batch::Upload>
      upload_;  // null: all of the content is here, or was once
  uint64_t ticket_ = 0;
  bool is_sender_ = false;  // the scheduler knows
  std::optional<initiator::batch::UploadSyncer>
      syncer_;  // while content may arrive; uses all of these
};

}  // namespace muster::initiator::api
