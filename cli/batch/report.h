// Outcome: the result of a batch, as `muster run` and `muster batch submit --wait` print it.
// ReportView and WriteReport: its report.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "muster/job/job.h"
#include "muster/report/report_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::cli {

struct Outcome {
  uint64_t batch = 0;
  std::string job;
  report::Progress counted;
  double seconds = 0;
  double transactions_per_second = 0;
  bool complete = false;
  bool late = false;  // later than the job's SLA

  nlohmann::ordered_json Json() const;
  // "batch 7: 541,909 transactions = …", and how long it took; two lines.
  std::string Text() const;
  // One line for each kind of loss (transactions that are not in the totals), with the command that
  // shows it. `where` names the batch's data directory in those commands, as DataDirOption does.
  std::string Losses(const job::Tolerance& tolerate, const std::string& where) const;
  // The exit code: decided by the share of the batch that was rejected or given up, and then by the
  // SLA.
  int Code(const job::Tolerance& tolerate) const;
};

// ReportView: reads the report of batches, from a data directory or from a server.

// Not thread-safe.
class ReportView {
 public:
  virtual ~ReportView() = default;

  // As report::VisitRows; all rows are of one moment. Other errors are the service's.
  virtual absl::Status Visit(uint64_t batch, const std::string& group,
                             const report::RowVisitor& visitor) = 0;
};

// The view of a report reader.
class StoredReport final : public ReportView {
 public:
  explicit StoredReport(report::ReportReader* reader) : reader_(reader) {}

  absl::Status Visit(uint64_t batch, const std::string& group,
                     const report::RowVisitor& visitor) override {
    return report::VisitRows(*reader_, batch, group, visitor);
  }

 private:
  report::ReportReader* const reader_;  // not owned
};

// The report of the data directory, or of the server, that `options` name.
absl::StatusOr<std::unique_ptr<ReportView>> OpenReportView(const CommonOptions& options,
                                                           const Environment& environment);

// Prints a batch's aggregate.

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
