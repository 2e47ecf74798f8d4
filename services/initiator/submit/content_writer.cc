// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/content_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::initiator::submit {
namespace {

// Content that is gathered before it is written.
constexpr size_t kGatheredBytes = size_t{256} << 10;

}  // namespace

absl::Status ContentWriter::Begin(ledger::Batch batch) {
  // First: an upload that has no sender may expire, also one that cannot be opened.
  sender_.emplace(tools_.scheduler, batch.number);
  MUSTER_ASSIGN_OR_RETURN(upload_, tools_.uploads->Get(batch.number));
  ticket_ = upload_->TakeOver();
  // BatchScheduler::Cancel refuses an upload only if it is open by then.
  MUSTER_ASSIGN_OR_RETURN(const bool cancelled, tools_.scheduler->IsCancelled(batch.number));
  if (cancelled) {
    return absl::UnavailableError(absl::StrCat("batch ", batch.number, " was cancelled"));
  }
  there_ = upload_->size_so_far();
  batch_ = std::move(batch);
  return absl::OkStatus();
}

absl::Status ContentWriter::Add(absl::string_view bytes) {
  absl::StrAppend(&piece_, bytes);
  return piece_.size() < kGatheredBytes ? absl::OkStatus() : Flush();
}

absl::Status ContentWriter::Seal() {
  MUSTER_RETURN_IF_ERROR(Flush());
  const ledger::SealedContent content{size_, hash_.Digest()};
  const absl::Status sealed = upload_->Seal(ticket_, content.size, content.hash);
  if (absl::IsAlreadyExists(sealed)) {
    return absl::DataLossError(
        absl::StrCat("batch ", batch_.number, " was sealed with other records"));
  }
  MUSTER_RETURN_IF_ERROR(sealed);
  MUSTER_RETURN_IF_ERROR(tools_.submissions->RecordSealed(batch_.number, content));
  tools_.scheduler->Advance(batch_.number);
  return absl::OkStatus();
}

absl::Status ContentWriter::GiveUp(const absl::Status& why) {
  upload_->Refuse(why);
  MUSTER_RETURN_IF_ERROR(tools_.scheduler->Cancel(batch_.number, std::string(why.message())));
  return tools_.uploads->Delete(batch_.number);
}

absl::Status ContentWriter::Flush() {
  const uint64_t known = std::min<uint64_t>(piece_.size(), there_ - std::min(there_, size_));
  const absl::string_view rest = absl::string_view(piece_).substr(known);
  if (!rest.empty()) MUSTER_RETURN_IF_ERROR(upload_->Append(ticket_, size_ + known, rest));
  hash_.Update(piece_);
  size_ += piece_.size();
  piece_.clear();
  return absl::OkStatus();
}

}  // namespace muster::initiator::submit
