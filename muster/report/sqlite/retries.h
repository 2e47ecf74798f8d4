// SPDX-License-Identifier: Apache-2.0

// The rows of retries (muster/report/retry.h). A reader takes missing tables, as an older muster
// leaves them, for empty.
//
//   muster_retry         retry ─► batch, retried_in
//   muster_retried_line  batch, item, line ─► retry, retried_line
//                        batch, item, kWholeItem ─► the same of an item that was given up; the
//                        lines of its transactions follow once they have their place
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/report/report_store.h"
#include "muster/report/retry.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// As ReportStore's, in the caller's transaction.
absl::StatusOr<int64_t> RecordRetry(Connection* connection, uint64_t batch, int64_t retry,
                                    absl::Span<const report::RetriedTransaction> transactions,
                                    uint64_t retried_in);

// As ReportReader's.
absl::StatusOr<std::vector<report::RejectionPosition>> LoadClaimed(
    Connection* connection, uint64_t batch, int64_t retry, const report::RejectionPosition& after,
    size_t max);
absl::StatusOr<std::map<uint64_t, uint64_t>> LoadRetriedItems(Connection* connection,
                                                              uint64_t batch,
                                                              absl::Span<const uint64_t> items);

// Sets Progress::retry_of and retried_in.
absl::Status LoadRetries(Connection* connection, report::Progress* progress);

// In the caller's transaction: an item of a batch that has a receipt gets rejections, which no
// claim has seen.
absl::Status NoteNewRejections(Connection* connection, uint64_t batch);

// Frees, in the caller's transaction, what `batch` retries and what is retried of it: up to `max`
// rows. True: none is left.
absl::StatusOr<bool> ForgetRetries(Connection* connection, uint64_t batch, int64_t max);

}  // namespace muster::report::sqlite
