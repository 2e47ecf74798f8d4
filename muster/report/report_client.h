// SPDX-License-Identifier: Apache-2.0

// ReportClient: an initiator's access to the report that counts its batches: a report in its own
// process (LocalReportClient), or a controller's in another one (report/remote).
//
// Statuses are those of ReportStore; from another process also Unavailable and DeadlineExceeded,
// which leave the outcome open. Every call may be repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

// Items of one request or response: so many indexes fit a message, and a transaction stays short.
inline constexpr size_t kMaxReportItems = 4096;

// Batches of one question; their answer is far below what a message may hold.
inline constexpr size_t kMaxListedBatches = 1000;

// Thread-safe. After OK, a change is durable.
class ReportClient {
 public:
  virtual ~ReportClient() = default;

  // Registers a batch, as ReportStore::RegisterBatch does, and returns its progress.
  virtual absl::StatusOr<Progress> RegisterBatch(const BatchShape& shape) = 0;

  virtual absl::StatusOr<Progress> GetProgress(uint64_t batch) = 0;

  // The progress of those of `batches` that the report knows, by number. For a list of batches: one
  // question instead of many. InvalidArgument: more than kMaxListedBatches.
  virtual absl::StatusOr<std::map<uint64_t, Progress>> ListProgress(
      absl::Span<const uint64_t> batches);

  // The highest number of a batch that was ever registered; 0: none was.
  virtual absl::StatusOr<uint64_t> HighestBatch() = 0;

  // Indexes below `item_count`, from `from` on, that have no row, in order; fewer than `max`: there
  // are no more. InvalidArgument: `max` is not within 1 to kMaxReportItems.
  virtual absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                               uint64_t from, size_t max) = 0;

  // Indexes of dead-lettered items, from `from` on, in order; fewer than `max`: there are no more.
  // InvalidArgument: as above. Unimplemented: the controller is an older one.
  virtual absl::StatusOr<std::vector<uint64_t>> DeadLetteredItems(uint64_t batch, uint64_t from,
                                                                  size_t max);

  // Call when the batch may be complete: the controller checks it soon, and issues its receipt if
  // it is. Aborted: what kept the batch from its receipt when it was checked before.
  virtual absl::Status CheckCompletion(uint64_t batch) = 0;

  // NotFound: also when no receipt was issued yet.
  virtual absl::StatusOr<StoredReceipt> GetReceipt(uint64_t batch) = 0;

  // As TakeTally.
  virtual absl::StatusOr<Tally> GetTally(uint64_t batch) = 0;

  // As ReportStore::ReopenDeadLettered. InvalidArgument: more than kMaxReportItems.
  virtual absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) = 0;

  // As ReportStore::CancelBatch. Unimplemented: the controller is an older one.
  virtual absl::Status CancelBatch(uint64_t batch, const Cancellation& cancellation);

  // As ReportReader::RetriedItems. InvalidArgument: more than kMaxReportItems. Unimplemented: the
  // controller is an older one.
  virtual absl::StatusOr<std::map<uint64_t, uint64_t>> RetriedItems(
      uint64_t batch, absl::Span<const uint64_t> items);

  // As ReportStore::ClaimRejections. InvalidArgument: more than kMaxNamedLines lines or items, or
  // both, or `max` is not within 1 to kMaxClaimedRejections. Unimplemented: the controller is an
  // older one; one that knows no items claims rejections alone.
  virtual absl::StatusOr<RetryClaims> ClaimRejections(uint64_t batch, const RetrySelection& which,
                                                      int64_t max);
  // As ReportReader::ClaimedRejections; `max` is within 1 to kMaxReportItems.
  virtual absl::StatusOr<std::vector<RejectionPosition>> ClaimedRejections(
      uint64_t batch, int64_t retry, const RejectionPosition& after, size_t max);
  // As ReportStore::RecordRetry. InvalidArgument: more than kMaxReportItems.
  virtual absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                              absl::Span<const RetriedTransaction> transactions,
                                              uint64_t retried_in);

  // Deletes what was counted of a batch, a part with each call. True: the report no longer knows
  // the batch. Unimplemented: the controller is an older one.
  virtual absl::StatusOr<bool> ForgetBatch(uint64_t batch);
};

// LocalReportClient: the ReportClient for a report in the same process.

// Thread-safe.
class LocalReportClient final : public ReportClient {
 public:
  // `report` is not owned and outlives the client. `check_completion` is the controller's
  // CheckCompletion: any thread may call it, and it returns at once. Without one, nothing is
  // checked.
  explicit LocalReportClient(ReportStore* report,
                             std::function<absl::Status(uint64_t batch)> check_completion = {})
      : report_(report), check_completion_(std::move(check_completion)) {}

  absl::StatusOr<Progress> RegisterBatch(const BatchShape& shape) override;
  absl::StatusOr<Progress> GetProgress(uint64_t batch) override;
  absl::StatusOr<std::map<uint64_t, Progress>> ListProgress(
      absl::Span<const uint64_t> batches) override;
  absl::StatusOr<uint64_t> HighestBatch() override;
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override;
  absl::StatusOr<std::vector<uint64_t>> DeadLetteredItems(uint64_t batch, uint64_t from,
                                                          size_t max) override;
  absl::Status CheckCompletion(uint64_t batch) override;
  absl::StatusOr<StoredReceipt> GetReceipt(uint64_t batch) override;
  absl::StatusOr<Tally> GetTally(uint64_t batch) override;
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override;
  absl::Status CancelBatch(uint64_t batch, const Cancellation& cancellation) override;
  absl::StatusOr<std::map<uint64_t, uint64_t>> RetriedItems(
      uint64_t batch, absl::Span<const uint64_t> items) override;
  absl::StatusOr<RetryClaims> ClaimRejections(uint64_t batch, const RetrySelection& which,
                                              int64_t max) override;
  absl::StatusOr<std::vector<RejectionPosition>> ClaimedRejections(uint64_t batch, int64_t retry,
                                                                   const RejectionPosition& after,
                                                                   size_t max) override;
  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const RetriedTransaction> transactions,
                                      uint64_t retried_in) override;
  absl::StatusOr<bool> ForgetBatch(uint64_t batch) override;

 private:
  ReportStore* const report_;  // not owned
  const std::function<absl::Status(uint64_t batch)> check_completion_;
};

}  // namespace muster::report
