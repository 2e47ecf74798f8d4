// SPDX-License-Identifier: Apache-2.0

// RecordReader: reads records of a batch again, as they were submitted, by the boundaries of their
// items.
//
//   item ─► boundary (ledger) ─► slice of the source, held against its hash ─► records and lines
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/input/byte_source.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "services/initiator/batch/ordered_items.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::batch {

// A record of an item.
struct SubmittedRecord {
  int64_t line = 0;         // the physical line at which it begins
  absl::string_view bytes;  // without its line end; valid during the visit
  bool oversized = false;   // longer than a record may be: `bytes` is empty
};

// Holds one item at a time, and of a job with order_by the window of its source. Not thread-safe.
class RecordReader {
 public:
  // Opens the content of a batch. NotFound, PermissionDenied, InvalidArgument: it is not there.
  using OpenContent = std::function<absl::StatusOr<std::shared_ptr<const input::ByteSource>>(
      const ledger::Batch& batch)>;

  // `ledger` is not owned. NotFound: no such batch. FailedPrecondition: its content or its items
  // are deleted. DataLoss: the content is not there.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(uint64_t batch,
                                                            ledger::BatchLedger* ledger,
                                                            const OpenContent& open);

  // Calls `visit` with each record of the item, in order; an error of it ends the reading.
  // NotFound: the batch has no such item. DataLoss: the content has changed since it was split.
  absl::Status ForEach(uint64_t item,
                       const std::function<absl::Status(const SubmittedRecord&)>& visit);

  // What precedes the first record of the content, such as the header of a CSV.
  absl::StatusOr<std::string> Header() const;

  const input::InputFormat& format() const { return job_.input; }

  // Bytes of the content that were read so far.
  size_t bytes_read() const { return bytes_read_; }

 private:
  RecordReader(ledger::Batch batch, job::JobDefinition job, std::unique_ptr<BatchSource> source,
               ledger::BatchLedger* ledger);

  // The item's bytes, and, where its records are not neighbours in the content, their lines.
  absl::StatusOr<OrderedItem> Read(const ledger::ItemBoundary& boundary);

  const ledger::Batch batch_;
  const job::JobDefinition job_;
  const std::unique_ptr<BatchSource> source_;
  ledger::BatchLedger* const ledger_;  // not owned
  OrderedItems ordered_;               // uses source_ and job_
  std::optional<uint64_t> window_;     // that ordered_ has in hand begins there
  size_t bytes_read_ = 0;
};

}  // namespace muster::initiator::batch
