// SPDX-License-Identifier: Apache-2.0

// SubmitCall: one stream of BatchService.Submit, from its header to its seal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "muster/base/clock.h"
#include "muster/rpc/stream_limiter.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/batch/upload_sender.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/upload_syncer.h"
#include "services/initiator/submit/uploads.h"

namespace muster::initiator::api {

// One thread reads the stream; once there is content, a second thread syncs the upload and answers
// `durable`. So the server bounds how many there are, and ends those that are idle (kUploadLimits).
class SubmitCall {
 public:
  using Stream = grpc::ServerReaderWriter<v1::SubmitResponse, v1::SubmitRequest>;

  // Nothing is owned.
  struct Tools {
    submit::Submissions* submissions = nullptr;
    batch::BatchScheduler* scheduler = nullptr;
    submit::Uploads* uploads = nullptr;
    base::Clock* clock = nullptr;
  };

  // Nothing is owned. `place` is that of the stream among all uploads.
  SubmitCall(const Tools& tools, rpc::StreamLimiter::Place* place, grpc::ServerContext* context,
             Stream* stream)
      : submissions_(tools.submissions),
        scheduler_(tools.scheduler),
        uploads_(tools.uploads),
        clock_(tools.clock),
        place_(place),
        context_(context),
        stream_(stream) {}
  SubmitCall(const SubmitCall&) = delete;
  SubmitCall& operator=(const SubmitCall&) = delete;

  // Reads the stream until the content is sealed or an error ends the call; the caller answers the
  // seal. Cancelled: the client went away.
  absl::Status Run();

  // The number of the batch that Run has sealed.
  uint64_t batch() const { return batch_.number; }

 private:
  // Takes the content of a header with at_once: one chunk and the seal follow it immediately.
  absl::Status TakeAtOnce(const v1::SubmitHeader& header);
  absl::Status TakePieces(const v1::SubmitHeader& header);
  absl::Status CheckCancelled() const;
  // Acknowledges the header of batch_.
  absl::Status Accept();
  // Finds batch_'s upload and becomes its writer.
  absl::Status TakeOver();
  void BeginToSync();
  // Stops the answers `durable`; the seal syncs the rest of the content.
  absl::Status EndSyncing();
  absl::Status Take(const v1::SubmitChunk& chunk);
  absl::Status Seal(const v1::SubmitSeal& seal);
  // As Upload::Seal, and compares with what the ledger has recorded. FailedPrecondition: the upload
  // is whole, and damaged.
  absl::Status SealUpload(const ledger::SealedContent& content);
  // Turns an error of the upload into the answer for the client, which names the batch.
  absl::Status Explained(absl::Status refused) const;
  // Gives the upload up: no later call can resume it.
  absl::Status Drop(absl::Status why);
  // False: the client has ended the stream or gone away, or the stream was ended here.
  bool Read(v1::SubmitRequest* request);
  absl::Status Send(const v1::SubmitResponse& response);
  // Checks the seal against the recorded size and fingerprint, for content without an upload.
  absl::Status CheckRecorded(const v1::SubmitSeal& seal, const base::Fingerprint128& hash) const;
  uint64_t RecordedSize() const;
  // Where the content ends: in the upload, or, if the upload is gone, as the ledger recorded it.
  uint64_t SizeSoFar() const;
  uint64_t DurableSize() const;

  submit::Submissions* const submissions_;  // not owned
  batch::BatchScheduler* const scheduler_;  // not owned
  submit::Uploads* const uploads_;          // not owned
  base::Clock* const clock_;                // not owned
  rpc::StreamLimiter::Place* const place_;  // not owned
  grpc::ServerContext* const context_;      // not owned
  Stream* const stream_;                    // not owned
  ledger::Batch batch_;
  std::shared_ptr<submit::Upload> upload_;  // null: all of the content is here, or was once
  uint64_t ticket_ = 0;
  std::optional<submit::UploadSyncer> syncer_;  // while content may arrive; uses all of these
  std::optional<batch::UploadSender> sender_;   // once the upload is taken over
};

}  // namespace muster::initiator::api
