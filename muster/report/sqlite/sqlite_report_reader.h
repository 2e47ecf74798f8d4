// Readers of the SQLite report.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// Reads over a connection of its own, in a transaction that ends with the reader.
absl::StatusOr<std::unique_ptr<report::ReportReader>> OpenReader(const std::string& path);

// Reads over `connection` (not owned), in the transaction that its caller began.
std::unique_ptr<report::ReportReader> ReaderOver(Connection* connection);

}  // namespace muster::report::sqlite
