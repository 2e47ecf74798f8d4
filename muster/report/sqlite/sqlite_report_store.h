// The report in one SQLite file: WAL, synchronous=FULL, one writer and any number of readers.
//
//   sqlite3 .muster/report.db 'select * from by_customer'
//
// schema.h describes its tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/report/report_store.h"

namespace muster::report::sqlite {

struct SqliteOptions {
  base::Clock* clock = base::RealClock();  // not owned
  // Only Read() works. Can be open beside a writer, and changes nothing.
  bool read_only = false;
  // Beyond this a commit is ResourceExhausted; 0 leaves it to the disk.
  int64_t max_bytes = 0;
  // How long a commit waits for another writer, such as a user's shell, before it is Unavailable.
  absl::Duration busy_wait = absl::Seconds(2);
};

// Creates the file if need be (not read-only). FailedPrecondition: another writer has it open, it
// is not a report, or a newer muster wrote it. NotFound: read-only and nothing there yet. DataLoss:
// its file or its write-ahead log is damaged.
absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenSqliteReport(
    const std::string& path, const SqliteOptions& options = {});

}  // namespace muster::report::sqlite
