// SPDX-License-Identifier: Apache-2.0

// The rows of batches: their running totals, kept by each commit, and what else is known of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/report/counted_item.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// In the caller's transaction. FailedPrecondition: known with another job or revision.
// AlreadyExists: another owner's.
absl::Status EnsureBatch(Connection* connection, const report::BatchShape& shape);

// NotFound naming the batch.
absl::StatusOr<report::Progress> LoadProgress(Connection* connection, uint64_t batch);
// In order of number.
absl::StatusOr<std::vector<report::Progress>> LoadAllProgress(Connection* connection);

// nullopt: the batch is not cancelled.
absl::StatusOr<std::optional<report::Cancellation>> LoadCancellation(Connection* connection,
                                                                     uint64_t batch);
// LoadProgress with what the other tables say of the batch.
absl::StatusOr<report::Progress> LoadStanding(Connection* connection, uint64_t batch);

// In the caller's transaction: notes that the receipt of a batch, if it has one, no longer proves
// what is counted, and that it does again.
absl::Status StoreReopened(Connection* connection, const report::Progress& progress);
absl::Status ForgetReopened(Connection* connection, uint64_t batch);

// In the caller's transaction: notes in whose place the batch counts.
absl::Status StoreReplaced(Connection* connection, const report::BatchShape& shape);

// In the caller's transaction. FailedPrecondition: the batch has a receipt. AlreadyExists: it is
// another owner's.
absl::Status StoreCancellation(Connection* connection, uint64_t batch,
                               const report::Cancellation& cancellation);

// Adds the item to the totals, or with sign −1 takes it back.
void AddToProgress(const report::ItemFacts& item, int sign, report::Progress* progress);

absl::Status StoreProgress(Connection* connection, const report::Progress& progress);

}  // namespace muster::report::sqlite
