// SPDX-License-Identifier: Apache-2.0

// Deletes the rows of a batch.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// As ReportStore::ForgetBatch, in the caller's transaction.
absl::StatusOr<bool> ForgetBatch(Connection* connection, uint64_t batch, int64_t max_rows);

}  // namespace muster::report::sqlite
