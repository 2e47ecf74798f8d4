// SPDX-License-Identifier: Apache-2.0

// RetriedContent: what a batch was submitted with, for a retry of what failed of it: its header,
// and the records at the places that the report names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/input/format.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "services/initiator/batch/record_reader.h"

namespace muster::initiator::api {

// Holds one item at a time. Not thread-safe.
class RetriedContent {
 public:
  using Visit = std::function<absl::Status(const batch::SubmittedRecord&)>;

  // FailedPrecondition: the batch is not complete. Other errors as RecordReader::Open. `ledger` is
  // not owned.
  static absl::StatusOr<std::unique_ptr<RetriedContent>> Open(
      uint64_t number, ledger::BatchLedger* ledger,
      const batch::RecordReader::OpenContent& open_content);

  const ledger::Batch& batch() const { return batch_; }
  absl::StatusOr<std::string> Header() const { return reader_->Header(); }
  const input::InputFormat& format() const { return reader_->format(); }

  // As RecordReader::ForEach. DataLoss only before the first record.
  absl::Status ForEachOf(uint64_t item, const Visit& visit) {
    return reader_->ForEach(item, visit);
  }

  // Calls `visit` with the record at each position, in their order; nullopt: it is longer than a
  // record may be, or its item is damaged.
  absl::Status ForEach(absl::Span<const report::RejectionPosition> positions,
                       const std::function<absl::Status(const report::RejectionPosition&,
                                                        const std::optional<std::string>&)>& visit);

 private:
  RetriedContent(ledger::Batch batch, std::unique_ptr<batch::RecordReader> reader)
      : batch_(std::move(batch)), reader_(std::move(reader)) {}

  absl::Status ReadItem(uint64_t item, std::map<int64_t, std::optional<std::string>>* records);

  const ledger::Batch batch_;
  const std::unique_ptr<batch::RecordReader> reader_;
};

}  // namespace muster::initiator::api
