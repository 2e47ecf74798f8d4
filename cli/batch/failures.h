// SPDX-License-Identifier: Apache-2.0

// FailureReader: the transactions of a batch that are not in its results, page by page, each with
// its record as it was submitted.
//
//   report (a controller) ─► item, line, reason ─┐
//                                                ├─► FailedTransaction
//   content (an initiator) ─► record ────────────┘
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/batch/batch_admin.h"
#include "muster/report/report_store.h"

namespace muster::cli {

enum class FailureKind {
  kRejected,      // refused one by one
  kDeadLettered,  // of items that were given up as a whole
};

struct FailedTransaction {
  uint64_t item = 0;
  int64_t line = 0;  // 0: all of the item; its records are not there any more
  std::string reason;
  std::optional<std::string> record;  // none: it is not there any more, or too long
  uint64_t retried_in = 0;    // as report::RejectionRow has them; of a dead letter, its item's
  int64_t retry_of_line = 0;  // 0 of a dead letter
  bool open_quote = false;    // v1::SubmittedRecord has it
};

// Rows of a page at most.
inline constexpr size_t kMaxFailurePage = 1000;

// Holds the rows of a page without their records, and the records of one answer: 3 MiB of each. Not
// thread-safe.
class FailureReader {
 public:
  // Goes on behind `after`. `admin` is not owned.
  FailureReader(BatchAdmin* admin, uint64_t batch, FailureKind kind,
                const report::RejectionPosition& after)
      : admin_(admin), batch_(batch), kind_(kind), after_(after) {}

  // The next ones, at most `max` and kMaxFailurePage: as many as one answer has records of, and of
  // dead letters those of one item at most. None: there are no more.
  absl::StatusOr<std::vector<FailedTransaction>> Next(size_t max);

  // Where another reader goes on.
  const report::RejectionPosition& position() const { return after_; }
  // What precedes the first record of the content; known with the first record.
  const std::string& header() const { return header_; }
  // Why records are left out; OK: they are not.
  const absl::Status& records_problem() const { return records_problem_; }

 private:
  absl::StatusOr<std::vector<FailedTransaction>> NextRejected(size_t max);
  absl::StatusOr<std::vector<FailedTransaction>> NextDeadLettered(size_t max);
  // Adds the records of these rejections, and drops the rejections behind the last one that fits
  // into an answer.
  absl::Status AddRecords(std::vector<FailedTransaction>* failures);
  // Adds up to `max` transactions of the first item of dead_, and drops it when it has no more.
  absl::Status TakeDead(size_t max, std::vector<FailedTransaction>* failures);
  // std::nullopt: records cannot be read, as records_problem_ says from now on.
  absl::StatusOr<std::optional<v1::ReadRecordsResponse>> Read(
      const v1::ReadRecordsRequest& request);

  BatchAdmin* const admin_;  // not owned
  const uint64_t batch_;
  const FailureKind kind_;
  report::RejectionPosition after_;
  std::deque<report::RejectionRow> rejected_;  // the next rejections
  std::deque<report::ItemRow> dead_;           // the next dead letters
  std::string header_;
  absl::Status records_problem_;
};

}  // namespace muster::cli
