// SPDX-License-Identifier: Apache-2.0

// WriteReport: prints a batch's aggregate.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cli/output/environment.h"
#include "muster/report/report_store.h"

namespace muster::cli {

struct ReportRequest {
  uint64_t batch = 0;
  std::string group;  // empty: all
  OutputFormat format = OutputFormat::kTable;
  int64_t max_rows = -1;   // per group, for tables; -1: all
  std::string where = "";  // DataDirOption, for the line that says how to see the others
};

// Table: a titled table per group. JSON: {"batch":…,"groups":[{"name":…,"rows":[{key…,
// measure…}]}]} with every number an exact decimal string. YAML: the same. CSV: one group with a
// header. NotFound: no such batch or group. InvalidArgument: CSV of several groups.
// `read` shows the rows of the request to a visitor, as report::VisitRows does; all rows are of one
// moment.
using ReadRows = absl::FunctionRef<absl::Status(const report::RowVisitor&)>;
absl::Status WriteReport(ReadRows read, const ReportRequest& request, std::ostream& out);

}  // namespace muster::cli
