// The rows of batches: their running totals, kept by each commit.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/report/report_store.h"
#include "muster/report/shape.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// In the caller's transaction. FailedPrecondition: known with another job or revision.
absl::Status EnsureBatch(Connection* connection, const report::BatchShape& shape);

// NotFound naming the batch.
absl::StatusOr<report::Progress> LoadProgress(Connection* connection, uint64_t batch);
// In order of number.
absl::StatusOr<std::vector<report::Progress>> LoadAllProgress(Connection* connection);

// Adds the item to the totals, or with sign −1 takes it back.
void AddToProgress(const report::ItemFacts& item, int sign, report::Progress* progress);

absl::Status StoreProgress(Connection* connection, const report::Progress& progress);

}  // namespace muster::report::sqlite
