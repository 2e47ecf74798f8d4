// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/retried_content.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::initiator::api {

absl::StatusOr<std::unique_ptr<RetriedContent>> RetriedContent::Open(
    uint64_t number, ledger::BatchLedger* ledger,
    const batch::RecordReader::OpenContent& open_content) {
  MUSTER_ASSIGN_OR_RETURN(ledger::Batch batch, ledger->Get(number));
  if (!batch.undecided && batch.state == ledger::BatchState::kCancelled) {
    return absl::FailedPreconditionError(absl::StrCat(
        "batch ", number, " is cancelled, and is not retried: `muster batch rejections ", number,
        " --as-input` writes what was rejected, to submit it anew"));
  }
  if (!batch.undecided && batch.state != ledger::BatchState::kComplete) {
    return absl::FailedPreconditionError(
        absl::StrCat("batch ", number, " is ", BatchStateName(batch.state),
                     ": what fails of it is retried once it is complete"));
  }
  MUSTER_ASSIGN_OR_RETURN(auto reader, batch::RecordReader::Open(number, ledger, open_content));
  return std::unique_ptr<RetriedContent>(new RetriedContent(std::move(batch), std::move(reader)));
}

absl::Status RetriedContent::ForEach(
    absl::Span<const report::RejectionPosition> positions,
    const std::function<absl::Status(const report::RejectionPosition&,
                                     const std::optional<std::string>&)>& visit) {
  for (size_t begin = 0, end = 0; begin < positions.size(); begin = end) {
    std::map<int64_t, std::optional<std::string>> records;
    for (; end < positions.size() && positions[end].item == positions[begin].item; ++end) {
      records[positions[end].line] = std::nullopt;
    }
    const absl::Status read = ReadItem(positions[begin].item, &records);
    if (absl::IsDataLoss(read)) {
      // The other items' records must not wait for it.
      base::LogUnlessOk(base::kWarning, "rejected records cannot be retried", read,
                        {{"batch", batch_.number}});
      for (auto& [line, record] : records) record = std::nullopt;
    } else {
      MUSTER_RETURN_IF_ERROR(read);
    }
    for (size_t i = begin; i < end; ++i) {
      MUSTER_RETURN_IF_ERROR(visit(positions[i], records[positions[i].line]));
    }
  }
  return absl::OkStatus();
}

absl::Status RetriedContent::ReadItem(uint64_t item,
                                      std::map<int64_t, std::optional<std::string>>* records) {
  size_t found = 0;
  MUSTER_RETURN_IF_ERROR(
      reader_->ForEach(item, [&](const batch::SubmittedRecord& record) -> absl::Status {
        const auto wanted = records->find(record.line);
        if (wanted == records->end()) return absl::OkStatus();
        ++found;
        if (!record.oversized) wanted->second = std::string(record.bytes);
        return absl::OkStatus();
      }));
  if (found == records->size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("item ", item, " of batch ", batch_.number,
                                          " has no record at a line that was rejected"));
}

}  // namespace muster::initiator::api
