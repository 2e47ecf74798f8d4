// SPDX-License-Identifier: Apache-2.0

// Checks a report: each page, the write-ahead log, and each batch against its receipt or its
// running totals. A repair keeps the damaged files, and makes the report again of the batches that
// are sound. The others are taken away: their runs count their items again, from the ledger.
//
//   damaged                     a repair
//   a page                      makes the report again
//   the write-ahead log         goes on with what precedes the damage
//   a batch                     takes it away, with all of its rows
//   a batch that the ledger     takes it away: the run that finds no batch in the ledger begins
//   one,
//     does not know             and a sum over batches would count its items twice
//   a batch that the ledger     leaves it; its caller opens the batch again in the ledger
//     has complete, and lacks
//     items here
//   a batch whose items the     is noted and stays; a report that is made again does not have it
//     ledger has deleted, if it
//     is not whole
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/os/quarantine.h"

namespace muster::report::sqlite {

// A batch of the ledger.
struct KnownBatch {
  uint64_t number = 0;
  uint64_t items = 0;
  bool complete = false;
  // Nothing can count it again, and its retention may be taking it away from the report.
  bool items_deleted = false;
};

struct ReportCheckOptions {
  os::CheckOptions check;
  // In order of number; not owned. nullptr: there is no ledger beside the report, or none that can
  // be read.
  const std::vector<KnownBatch>* ledger_batches = nullptr;
};

struct ReportSummary : os::CheckSummary {
  uint64_t last_batch = 0;
  // Batches that are complete in the ledger, and of which the report, mended, lacks items.
  std::vector<uint64_t> lacking;
};

// A report of an older muster has no page sums, and pages that another program wrote have none; a
// check notes that, and a repair adds them. NotFound: there is no report. base::Busy: a process
// writes to it. FailedPrecondition: it is no report, or a newer muster wrote it.
absl::StatusOr<ReportSummary> CheckReport(const std::string& path,
                                          const ReportCheckOptions& options);

}  // namespace muster::report::sqlite
