// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/record_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/input/format.h"
#include "muster/input/key_groups.h"
#include "muster/input/slice_reader.h"
#include "muster/job/job_file.h"

namespace muster::initiator::batch {
namespace {

absl::Status Deleted(uint64_t batch, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("the ", what, " of batch ", batch, " is deleted, as its retention says"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(uint64_t number,
                                                                 ledger::BatchLedger* ledger,
                                                                 const OpenContent& open) {
  MUSTER_ASSIGN_OR_RETURN(ledger::Batch batch, ledger->Get(number));
  if (batch.undecided) return absl::NotFoundError(absl::StrCat("there is no batch ", number));
  if (batch.items_deleted || batch.content_deleted) return Deleted(number, "content");
  MUSTER_ASSIGN_OR_RETURN(job::JobDefinition job, job::ParseJob(batch.job_definition, batch.job));
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> bytes = open(batch);
  if (absl::IsNotFound(bytes.status()) || absl::IsPermissionDenied(bytes.status()) ||
      absl::IsInvalidArgument(bytes.status())) {
    return absl::DataLossError(bytes.status().message());
  }
  MUSTER_RETURN_IF_ERROR(bytes.status());
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source,
                          BatchSource::Over(*std::move(bytes), batch.source_path, job.input));
  return std::unique_ptr<RecordReader>(
      new RecordReader(std::move(batch), std::move(job), std::move(source), ledger));
}

RecordReader::RecordReader(ledger::Batch batch, job::JobDefinition job,
                           std::unique_ptr<BatchSource> source, ledger::BatchLedger* ledger)
    : batch_(std::move(batch)),
      job_(std::move(job)),
      source_(std::move(source)),
      ledger_(ledger),
      ordered_(source_.get(), &job_) {}

absl::StatusOr<OrderedItem> RecordReader::Read(const ledger::ItemBoundary& boundary) {
  OrderedItem item;
  if (boundary.window.has_value() && job_.order_by.has_value()) {
    if (window_ != boundary.window->offset) bytes_read_ += input::kKeyWindowBytes;
    window_ = boundary.window->offset;
    MUSTER_ASSIGN_OR_RETURN(item, ordered_.Read(boundary));
  } else {
    bytes_read_ += boundary.length;
    item.boundary = boundary;
    MUSTER_ASSIGN_OR_RETURN(item.slice, source_->Read(boundary));
  }
  if (base::Fingerprint(item.slice) != boundary.content) {
    return absl::DataLossError(absl::StrCat(source_->path(), ": the item that begins at line ",
                                            boundary.first_line,
                                            " has changed since the batch was split"));
  }
  return item;
}

absl::Status RecordReader::ForEach(
    uint64_t index, const std::function<absl::Status(const SubmittedRecord&)>& visit) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ledger::ItemBoundary> boundaries,
                          ledger_->Items(batch_.number, index, 1));
  if (boundaries.empty()) {
    return absl::NotFoundError(absl::StrCat("batch ", batch_.number, " has no item ", index));
  }
  const ledger::ItemBoundary& boundary = boundaries.front();
  if (boundary.oversized) return visit({boundary.first_line, "", true});
  MUSTER_ASSIGN_OR_RETURN(const OrderedItem item, Read(boundary));
  const std::vector<int64_t>& lines = item.records.lines;
  const input::TextSource text(item.slice);
  input::SliceReader records(&text, job_.input, {.transactions = 1},
                             {.offset = 0, .line = boundary.first_line});
  for (size_t ordinal = 0;; ++ordinal) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<input::Slice> record, records.Next());
    if (!record.has_value()) return absl::OkStatus();
    const int64_t line = ordinal < lines.size() ? lines[ordinal] : record->first_line;
    MUSTER_RETURN_IF_ERROR(visit({line, input::WithoutLineEnd(record->data), record->oversized}));
  }
}

absl::StatusOr<std::string> RecordReader::Header() const {
  std::string header(source_->FirstRecord().offset, '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t read,
                          source_->bytes()->Read(0, header.data(), header.size()));
  header.resize(read);
  return header;
}

}  // namespace muster::initiator::batch
