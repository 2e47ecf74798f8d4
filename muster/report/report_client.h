// ReportClient: what an initiator asks of whoever counts its batches: a report in its own process
// (store_desk.h), or the controller in another one (muster/report_remote).
//
// Statuses are those of ReportStore; from another process also Unavailable and DeadlineExceeded,
// which leave the outcome open. Everything here may be asked again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/report/audit.h"
#include "muster/report/counted_item.h"
#include "muster/report/receipt.h"
#include "muster/report/report_store.h"

namespace muster::report {

// Items of one question or answer: so many indexes fit a message, and a transaction stays short.
inline constexpr size_t kMaxReportItems = 4096;

// Thread-safe. What answered OK is durable.
class ReportClient {
 public:
  virtual ~ReportClient() = default;

  // Makes a batch known, as ReportStore::RegisterBatch does, and answers where it stands.
  virtual absl::StatusOr<Progress> RegisterBatch(const BatchShape& shape) = 0;

  virtual absl::StatusOr<Progress> GetProgress(uint64_t batch) = 0;

  // The highest number of a batch that was ever registered; 0: none was.
  virtual absl::StatusOr<uint64_t> HighestBatch() = 0;

  // Indexes below `item_count`, from `from` on, that have no row, in order; fewer than `max`: there
  // are no more. InvalidArgument: `max` is not within 1 to kMaxReportItems.
  virtual absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                               uint64_t from, size_t max) = 0;

  // The batch may be complete: it is looked at soon, and its receipt issued when it is.
  virtual absl::Status CheckCompletion(uint64_t batch) = 0;

  // NotFound: also when no receipt was issued yet.
  virtual absl::StatusOr<StoredReceipt> GetReceipt(uint64_t batch) = 0;

  // As TakeTally.
  virtual absl::StatusOr<Tally> GetTally(uint64_t batch) = 0;

  // As ReportStore::ReopenDeadLettered. InvalidArgument: more than kMaxReportItems.
  virtual absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) = 0;
};

// LocalReportClient: the counting desk of the process that has the report.

// Thread-safe.
class LocalReportClient final : public ReportClient {
 public:
  // `report` is not owned and outlives the desk. `check_completion` is the controller's: any thread
  // may call it, and it answers at once.
  LocalReportClient(ReportStore* report, std::function<void(uint64_t batch)> check_completion)
      : report_(report), check_completion_(std::move(check_completion)) {}

  absl::StatusOr<Progress> RegisterBatch(const BatchShape& shape) override;
  absl::StatusOr<Progress> GetProgress(uint64_t batch) override;
  absl::StatusOr<uint64_t> HighestBatch() override;
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override;
  absl::Status CheckCompletion(uint64_t batch) override;
  absl::StatusOr<StoredReceipt> GetReceipt(uint64_t batch) override;
  absl::StatusOr<Tally> GetTally(uint64_t batch) override;
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override;

 private:
  ReportStore* const report_;  // not owned
  const std::function<void(uint64_t batch)> check_completion_;
};

}  // namespace muster::report
