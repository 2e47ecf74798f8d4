// SPDX-License-Identifier: Apache-2.0

// Identity: which report a file is, and who may write to it. One row, which each change of the
// report reads in its own transaction: a controller that another one has taken over from writes
// nothing more.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// Gives the report an id unless it has one. Its table is there (schema.h).
absl::Status EnsureIdentity(Connection* connection);

// NotFound: an older muster made the file, and gave it no id.
absl::StatusOr<report::ReportIdentity> LoadIdentity(Connection* connection);

// Makes `owner` the one that may write. FailedPrecondition: a later epoch has begun, or another
// instance under the same epoch.
absl::Status ClaimReport(Connection* connection, const report::ReportOwner& owner);

// FailedPrecondition unless `owner` is the one that may write. Call it in the transaction that
// writes.
absl::Status CheckOwner(Connection* connection, const report::ReportOwner& owner);

// Copies the identity of the file at `from`, which may be damaged: what cannot be read is left as
// it is.
absl::Status CopyIdentity(Connection* connection, const std::string& from);

}  // namespace muster::report::sqlite
