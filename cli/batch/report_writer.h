// Prints a batch's aggregate.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "cli/batch/report_view.h"
#include "cli/output/environment.h"

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
absl::Status WriteReport(ReportView& view, const ReportRequest& request, std::ostream& out);

}  // namespace muster::cli
