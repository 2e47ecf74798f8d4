// SPDX-License-Identifier: Apache-2.0

// Deletes the rows of a batch, and what is left of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// As ReportStore::ForgetBatch, in the caller's transaction.
absl::StatusOr<bool> ForgetBatch(Connection* connection, uint64_t batch, int64_t max_rows);

// As ReportStore::ForgetJob, in the caller's transaction. No statement may be prepared that fills
// the job's tables: another job's may have such a name next.
absl::Status ForgetJob(Connection* connection, absl::string_view job);
// As ReportReader::JobsWithoutBatches.
absl::StatusOr<std::vector<std::string>> JobsWithoutBatches(Connection* connection);

}  // namespace muster::report::sqlite
