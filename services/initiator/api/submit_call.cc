// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/submit_call.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/base/trace_context.h"
#include "muster/ledger/batch_proto.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::api {
namespace {

constexpr size_t kMaxChunkBytes = size_t{1} << 20;

absl::Status WithOffset(absl::Status status, uint64_t expected) {
  return rpc::WithReason(std::move(status),
                         {"WRONG_OFFSET", {{"expected_offset", absl::StrCat(expected)}}});
}

// Adds a reason by which a client can tell a cancelled batch from a stream that was cut off.
absl::Status AsCancelled(absl::Status status) {
  if (!absl::IsCancelled(status)) return status;
  return rpc::WithReason(std::move(status), {"BATCH_CANCELLED", {}});
}

// Empty if the key is missing, or has several values, which is ambiguous.
std::string MetadataOf(const grpc::ServerContext& context, const char* name) {
  const auto found = context.client_metadata().equal_range(name);
  if (std::distance(found.first, found.second) != 1) return "";
  const grpc::string_ref value = found.first->second;
  return std::string(value.data(), value.size());
}

// Libraries and proxies on the way set metadata without the submitter's knowledge: as the trace
// context standard says, a malformed value is ignored.
void AddTraceOfCall(const grpc::ServerContext& context, v1::SubmitHeader* header) {
  if (!header->traceparent().empty() || !header->tracestate().empty()) return;
  const std::string parent = MetadataOf(context, "traceparent");
  if (!base::TraceContext::FromTraceparent(parent).ok()) return;
  header->set_traceparent(parent);
  const std::string state = MetadataOf(context, "tracestate");
  if (base::CheckTraceState(state).ok()) header->set_tracestate(state);
}

absl::Status CutOff() { return absl::UnavailableError("the upload was cut off before its seal"); }

absl::Status CheckChunk(const v1::SubmitChunk& chunk) {
  if (!chunk.data().empty() && chunk.data().size() <= kMaxChunkBytes) return absl::OkStatus();
  return rpc::BadField("chunk.data", absl::StrCat("must have 1 to ", kMaxChunkBytes, " bytes"));
}

absl::StatusOr<base::Fingerprint128> HashIn(const v1::SubmitSeal& seal) {
  const auto hash = base::Fingerprint128::FromBytes(seal.content_hash());
  if (!hash.has_value()) return rpc::BadField("seal.content_hash", "must have 16 bytes");
  return *hash;
}

// The content of a header with at_once, checked before any of it is recorded.
absl::StatusOr<batch::InlineContent> WholeIn(const v1::SubmitRequest& content,
                                             const v1::SubmitRequest& seal) {
  if (!content.has_chunk() || !seal.has_seal()) {
    return rpc::BadField("header.at_once", "must be followed by one chunk and the seal");
  }
  const v1::SubmitChunk& chunk = content.chunk();
  MUSTER_RETURN_IF_ERROR(CheckChunk(chunk));
  if (chunk.offset() != 0) {
    return WithOffset(absl::OutOfRangeError("the whole content begins at byte 0"), 0);
  }
  if (seal.seal().size() != chunk.data().size()) {
    return WithOffset(absl::OutOfRangeError("the whole content is one chunk"), chunk.data().size());
  }
  MUSTER_ASSIGN_OR_RETURN(const base::Fingerprint128 hash, HashIn(seal.seal()));
  if (base::Fingerprint(chunk.data()) == hash) return batch::InlineContent{chunk.data(), hash};
  return absl::DataLossError("what arrived is not what was sent");
}

}  // namespace

absl::Status SubmitCall::Run() {
  v1::SubmitRequest request;
  if (!Read(&request)) return absl::CancelledError("the upload ended before its header");
  if (!request.has_header()) return rpc::BadField("header", "must come first");
  MUSTER_RETURN_IF_ERROR(submit::CheckChosen(request.header()));
  AddTraceOfCall(*context_, request.mutable_header());
  return request.header().at_once() ? TakeAtOnce(request.header()) : TakePieces(request.header());
}

absl::Status SubmitCall::TakeAtOnce(const v1::SubmitHeader& header) {
  v1::SubmitRequest content, seal;
  if (!Read(&content) || !Read(&seal)) return CutOff();
  MUSTER_ASSIGN_OR_RETURN(const batch::InlineContent whole, WholeIn(content, seal));
  std::optional<batch::InlineContent> kept;
  if (whole.data.size() <= batch::kMaxInlineContentBytes) kept = whole;
  MUSTER_ASSIGN_OR_RETURN(batch_, submissions_->Begin(header, kept, {.content = whole.data}));
  MUSTER_RETURN_IF_ERROR(Accept());
  // Content that is already recorded as a whole needs no upload: Seal compares it with the record.
  const bool is_recorded = upload_ == nullptr && batch_.source_content.has_value();
  if (!is_recorded) MUSTER_RETURN_IF_ERROR(Take(content.chunk()));
  return Seal(seal.seal());
}

absl::Status SubmitCall::TakePieces(const v1::SubmitHeader& header) {
  MUSTER_ASSIGN_OR_RETURN(batch_, submissions_->Begin(header));
  MUSTER_RETURN_IF_ERROR(Accept());
  v1::SubmitRequest request;
  while (Read(&request)) {
    switch (request.step_case()) {
      case v1::SubmitRequest::kChunk:
        MUSTER_RETURN_IF_ERROR(Take(request.chunk()));
        break;
      case v1::SubmitRequest::kSeal:
        return Seal(request.seal());
      case v1::SubmitRequest::kHeader:
        return rpc::BadField("header", "must come first, and once");
      case v1::SubmitRequest::STEP_NOT_SET:
        return rpc::BadField("step", "must be set");
    }
  }
  if (syncer_.has_value())
    (void)syncer_->Finish();  // a client that resumes the upload asks where it ends
  return CutOff();
}

absl::Status SubmitCall::TakeOver() {
  // First: an upload that has no sender may expire, also one that cannot be opened.
  sender_.emplace(scheduler_, batch_.number);
  MUSTER_ASSIGN_OR_RETURN(upload_, uploads_->Get(batch_.number));
  ticket_ = upload_->TakeOver();
  return CheckCancelled();
}

// BatchScheduler::Cancel refuses the upload only if it is open by then; so this call opens the
// upload first, and then asks the ledger.
absl::Status SubmitCall::CheckCancelled() const {
  MUSTER_ASSIGN_OR_RETURN(const bool cancelled, scheduler_->IsCancelled(batch_.number));
  if (!cancelled) return absl::OkStatus();
  return AsCancelled(absl::CancelledError(absl::StrCat("batch ", batch_.number, " is cancelled")));
}

absl::Status SubmitCall::Accept() {
  if (batch_.state == ledger::BatchState::kOpen) {
    if (batch_.content.empty()) {
      MUSTER_RETURN_IF_ERROR(TakeOver());
    } else {
      scheduler_->Advance(batch_.number);
    }
  }
  v1::SubmitResponse response;
  response.mutable_accepted()->set_batch(batch_.number);
  response.mutable_accepted()->set_state(ledger::ProgressOf(batch_).state());
  response.mutable_accepted()->set_durable_offset(DurableSize());
  MUSTER_RETURN_IF_ERROR(Send(response));
  BeginToSync();
  return absl::OkStatus();
}

void SubmitCall::BeginToSync() {
  if (upload_ == nullptr) return;
  const auto answer = [this](uint64_t durable) {
    scheduler_->Advance(batch_.number);
    v1::SubmitResponse response;
    response.mutable_durable()->set_durable_offset(durable);
    place_->Stir();                  // a client that is far ahead waits for this, and was not idle
    (void)stream_->Write(response);  // the reading thread notices that the client went away
  };
  // The client may be waiting for `durable` and send nothing more, so there is no request to answer
  // with the error: cut the stream off.
  const auto give_up = [this](const absl::Status& why) {
    base::Log(base::kError, "an upload cannot be synced, and must be resumed",
              {{"batch", batch_.number}, {"why", why.ToString()}});
    context_->TryCancel();
  };
  syncer_.emplace(upload_.get(), clock_, answer, give_up);
}

absl::Status SubmitCall::EndSyncing() {
  return syncer_.has_value() ? syncer_->HandOver() : absl::OkStatus();
}

// source_bytes grows as the batch is split; for content that was recorded as a whole, source_size
// has the size.
uint64_t SubmitCall::RecordedSize() const {
  return batch_.source_content.has_value() ? batch_.source_size : batch_.source_bytes;
}

uint64_t SubmitCall::SizeSoFar() const {
  return upload_ == nullptr ? RecordedSize() : upload_->size_so_far();
}

uint64_t SubmitCall::DurableSize() const {
  return upload_ == nullptr ? RecordedSize() : upload_->durable_size();
}

absl::Status SubmitCall::Take(const v1::SubmitChunk& chunk) {
  MUSTER_RETURN_IF_ERROR(CheckChunk(chunk));
  const absl::Status added = upload_ == nullptr
                                 ? absl::AlreadyExistsError("the content is whole already")
                                 : upload_->Append(ticket_, chunk.offset(), chunk.data());
  // The client may not have read yet that the content is already whole: a wrong offset tells it the
  // end.
  if (absl::IsAlreadyExists(added) && chunk.offset() != SizeSoFar()) {
    return Explained(absl::OutOfRangeError(absl::StrCat("the content is whole, and ends at byte ",
                                                        SizeSoFar(), ", not at ", chunk.offset())));
  }
  MUSTER_RETURN_IF_ERROR(Explained(added));
  syncer_->Wake();
  return absl::OkStatus();
}

absl::Status SubmitCall::Seal(const v1::SubmitSeal& seal) {
  MUSTER_ASSIGN_OR_RETURN(const base::Fingerprint128 hash, HashIn(seal));
  MUSTER_RETURN_IF_ERROR(AsCancelled(EndSyncing()));
  if (!batch_.content.empty()) MUSTER_RETURN_IF_ERROR(CheckCancelled());
  if (upload_ == nullptr && uploads_->IsSealed(batch_.number)) {
    MUSTER_ASSIGN_OR_RETURN(upload_, uploads_->Get(batch_.number));
    ticket_ = upload_->TakeOver();
  }
  absl::Status sealed =
      upload_ == nullptr ? CheckRecorded(seal, hash) : SealUpload({seal.size(), hash});
  if (absl::IsDataLoss(sealed)) return Drop(std::move(sealed));
  MUSTER_RETURN_IF_ERROR(Explained(std::move(sealed)));
  // After the upload, whose content is synced by now. A process that dies in between has not
  // answered, so the client seals again.
  if (upload_ != nullptr) {
    MUSTER_RETURN_IF_ERROR(submissions_->RecordSealed(batch_.number, {seal.size(), hash}));
  }
  if (batch_.state == ledger::BatchState::kOpen && upload_ != nullptr) {
    scheduler_->Advance(batch_.number);
  }
  return absl::OkStatus();
}

absl::Status SubmitCall::SealUpload(const ledger::SealedContent& content) {
  if (batch_.sealed_content.value_or(content) != content) {
    return absl::AlreadyExistsError("it was sealed with other content");
  }
  absl::Status sealed = upload_->Seal(ticket_, content.size, content.hash);
  if (!absl::IsAlreadyExists(sealed) || !batch_.sealed_content.has_value()) return sealed;
  return absl::FailedPreconditionError(
      absl::StrCat("the content of batch ", batch_.number,
                   " that lies here is not what was sealed: put it back from a backup, or cancel "
                   "the batch and submit it again"));
}

absl::Status SubmitCall::CheckRecorded(const v1::SubmitSeal& seal,
                                       const base::Fingerprint128& hash) const {
  const bool same =
      batch_.sealed_content.has_value()
          ? *batch_.sealed_content == ledger::SealedContent{seal.size(), hash}
          : seal.size() == RecordedSize() && batch_.source_content.value_or(hash) == hash;
  return same ? absl::OkStatus() : absl::AlreadyExistsError("it was sealed with other content");
}

absl::Status SubmitCall::Explained(absl::Status refused) const {
  if (absl::IsAlreadyExists(refused))
    return submit::RequestIdReused(batch_.number, "with other content");
  if (absl::IsAborted(refused)) {
    return absl::AbortedError(
        absl::StrCat("another submit goes on with the upload of batch ", batch_.number));
  }
  if (absl::IsOutOfRange(refused)) return WithOffset(std::move(refused), SizeSoFar());
  return AsCancelled(std::move(refused));
}

absl::Status SubmitCall::Drop(absl::Status why) {
  // Refuse first: the first reason counts, and writers must get this one, not the cancel's.
  upload_->Refuse(why);
  MUSTER_RETURN_IF_ERROR(scheduler_->Cancel(batch_.number, std::string(why.message())));
  MUSTER_RETURN_IF_ERROR(uploads_->Delete(batch_.number));
  base::Log(base::kError, "an upload is dropped: it has another hash than its seal",
            {{"batch", batch_.number}});
  return why;
}

bool SubmitCall::Read(v1::SubmitRequest* request) {
  place_->Waits();
  const bool read = stream_->Read(request);
  place_->Goes();
  return read;
}

absl::Status SubmitCall::Send(const v1::SubmitResponse& response) {
  if (stream_->Write(response)) return absl::OkStatus();
  return absl::CancelledError("the client went away");
}

}  // namespace muster::initiator::api
