// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/submit_whole.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/rpc/status.h"
#include "services/initiator/batch/source.h"
#include "services/initiator/batch/upload_sender.h"

namespace muster::initiator::submit {
namespace {

// As a stream's chunks: other writers of the disk come in between.
constexpr size_t kPieceBytes = size_t{1} << 20;

// The batch that the request id has; nullopt: `refused` is about something else.
std::optional<uint64_t> BatchIn(const absl::Status& refused) {
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(refused);
  const bool has_one = reason.has_value() && (reason->reason == "REQUEST_ID_REUSED" ||
                                              reason->reason == "REQUEST_ID_ELSEWHERE");
  if (!has_one) return std::nullopt;
  const auto named = reason->metadata.find("batch");
  uint64_t batch = 0;
  const bool is_number = named != reason->metadata.end() && absl::SimpleAtoi(named->second, &batch);
  return is_number ? std::optional<uint64_t>(batch) : std::nullopt;
}

absl::Status Send(const SubmitTools& tools, uint64_t batch, absl::string_view content) {
  const batch::UploadSender sender(tools.scheduler, batch);
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<Upload> upload, tools.uploads->Get(batch));
  const uint64_t ticket = upload->TakeOver();
  uint64_t offset = upload->size_so_far();
  while (!upload->sealed() && offset < content.size()) {
    const absl::string_view piece = content.substr(offset, kPieceBytes);
    MUSTER_RETURN_IF_ERROR(upload->Append(ticket, offset, piece));
    offset += piece.size();
  }
  const ledger::SealedContent sealed = {content.size(), base::Fingerprint(content)};
  MUSTER_RETURN_IF_ERROR(upload->Seal(ticket, sealed.size, sealed.hash));
  return tools.submissions->RecordSealed(batch, sealed);
}

}  // namespace

absl::StatusOr<uint64_t> SubmitWhole(const SubmitTools& tools, const v1::SubmitHeader& header,
                                     absl::string_view content) {
  // Begin takes a request id whose batch is cancelled for a new one.
  const absl::StatusOr<ledger::Batch> known =
      tools.ledger->FindByRequest(header.tenant(), header.request_id());
  if (known.ok() && known->state == ledger::BatchState::kCancelled) return known->number;
  std::optional<batch::InlineContent> whole;
  if (content.size() <= batch::kMaxInlineContentBytes) {
    whole = batch::InlineContent{content, base::Fingerprint(content)};
  }
  const absl::StatusOr<ledger::Batch> begun =
      tools.submissions->Begin(header, whole, {.content = content});
  if (const auto batch = BatchIn(begun.status()); batch.has_value()) return *batch;
  MUSTER_RETURN_IF_ERROR(begun.status());
  if (begun->state != ledger::BatchState::kOpen) return begun->number;
  if (begun->content.empty() && !begun->sealed_content.has_value()) {
    const absl::Status sent = Send(tools, begun->number, content);
    if (!sent.ok()) {
      return absl::UnavailableError(absl::StrCat("the content of batch ", begun->number,
                                                 " is not durable yet: ", sent.message()));
    }
  }
  tools.scheduler->Advance(begun->number);
  return begun->number;
}

}  // namespace muster::initiator::submit
