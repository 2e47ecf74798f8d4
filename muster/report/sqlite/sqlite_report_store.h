// SPDX-License-Identifier: Apache-2.0

// The report in one SQLite file: WAL, synchronous=FULL, one writer and any number of readers.
//
//   sqlite3 .muster/report.db 'select * from by_customer'
//
// schema.h describes its tables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/report/report_store.h"
#include "muster/telemetry/registry.h"

namespace muster::report::sqlite {

struct SqliteOptions {
  base::Clock* clock = base::RealClock();  // not owned
  // Only Read() works. Can be open beside a writer, and changes nothing.
  bool read_only = false;
  // Others may open it as owner, too, and the one with the highest epoch writes; nullopt: this is
  // the only writer, under the epoch of the last owner.
  std::optional<report::ReportOwner> owner = std::nullopt;
  // Beyond this a commit is ResourceExhausted; 0 leaves it to the disk.
  int64_t max_bytes = 0;
  // How long a commit waits for another writer, such as a user's shell, before it is Unavailable.
  absl::Duration busy_wait = absl::Seconds(2);
  telemetry::Registry* metrics = nullptr;  // measures a writer; null: nothing does; not owned
};

// Creates the file if need be (not read-only). FailedPrecondition: another writer has it open, an
// owner of a later epoch has opened it, it is not a report, or a newer muster wrote it. NotFound:
// read-only and nothing there yet. DataLoss: its file or its write-ahead log is damaged.
absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenSqliteReport(
    const std::string& path, const SqliteOptions& options = {});

// Which report the file is, beside any writer. NotFound: there is no file, or it has no id yet.
// DataLoss as above.
absl::StatusOr<report::ReportIdentity> ReadIdentity(const std::string& path);

}  // namespace muster::report::sqlite
