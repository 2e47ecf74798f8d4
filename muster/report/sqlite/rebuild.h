// SPDX-License-Identifier: Apache-2.0

// Makes a report again of some of its batches.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// OK when the tables that all batches share (the schema, the groups' tables) can be read.
absl::Status CheckCatalog(Connection* connection);

// OK when all rows of a batch can be read, and the page behind them, where a table's read sees that
// they end.
absl::Status CheckCopyable(Connection* connection, uint64_t batch);

// Puts a report with `batches` alone, which are copyable, in the place of the one at `path`; of the
// others nothing stays. What people added to the file, such as views, is gone. The caller has
// LockForWriting, and nobody has the report open. Killed at any point, it is run again; what the
// write-ahead log held may then be gone.
absl::Status Rebuild(const std::string& path, absl::Span<const uint64_t> batches);

}  // namespace muster::report::sqlite
