// SPDX-License-Identifier: Apache-2.0

// What a retry claims of a complete batch, so that no other one retries it, too (retries.h has the
// rows).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/report/report_store.h"
#include "muster/report/retry.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// Where what is selected of a complete batch stands: all that is named, or of all the items that
// were given up, as far as they are not claimed, until they have `max` transactions, and one more.
// Reads all of the batch's rejections, or items, which takes too long for a transaction that
// writes: only a redrive changes those of a complete batch. Statuses are those of
// ReportStore::ClaimRejections.
absl::StatusOr<std::vector<report::RejectionPosition>> FindSelected(
    Connection* connection, uint64_t batch, const report::RetrySelection& which, int64_t max);

// As ReportStore's, in the caller's transaction; `found` is what FindSelected found.
absl::StatusOr<report::RetryClaims> ClaimRejections(
    Connection* connection, uint64_t batch, const report::RetrySelection& which,
    absl::Span<const report::RejectionPosition> found, int64_t max, absl::Time now);

// Transactions that a retry has claimed. An item counts by its own row until its transactions have
// their places.
absl::StatusOr<int64_t> CountClaimed(Connection* connection, int64_t retry);

}  // namespace muster::report::sqlite
