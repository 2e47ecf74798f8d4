// The rows of retries (muster/report/retry.h). A reader takes missing tables, as an older muster
// leaves them, for empty.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/report/report_store.h"
#include "muster/report/retry.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// Where the rejections of a complete batch that begin at `lines` stand. Reads all of its
// rejections, which takes too long for a transaction that writes: what a complete batch has
// rejected only a redrive changes. Statuses are those of ReportStore::ClaimRejections.
absl::StatusOr<std::vector<report::RejectionPosition>> FindRejections(Connection* connection,
                                                                      uint64_t batch,
                                                                      std::vector<int64_t> lines);

// As ReportStore's, in the caller's transaction. No positions: all rejections.
absl::StatusOr<report::RetryClaims> ClaimRejections(
    Connection* connection, uint64_t batch, absl::Span<const report::RejectionPosition> positions,
    int64_t max, absl::Time now);
absl::StatusOr<int64_t> RecordRetry(Connection* connection, uint64_t batch, int64_t retry,
                                    absl::Span<const report::RetriedTransaction> transactions,
                                    uint64_t retried_in);

// As ReportReader's.
absl::StatusOr<std::vector<report::RejectionPosition>> LoadClaimed(
    Connection* connection, uint64_t batch, int64_t retry, const report::RejectionPosition& after,
    size_t max);

// Sets Progress::retry_of and retried_in.
absl::Status LoadRetries(Connection* connection, report::Progress* progress);

// In the caller's transaction: items of the batch may come to have rejections that no claim has
// seen.
absl::Status NoteRedrive(Connection* connection, uint64_t batch);

// Frees, in the caller's transaction, what `batch` retries and what is retried of it: up to `max`
// rows. True: none is left.
absl::StatusOr<bool> ForgetRetries(Connection* connection, uint64_t batch, int64_t max);

}  // namespace muster::report::sqlite
