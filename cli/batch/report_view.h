// ReportView: what batches add up to, wherever it is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "muster/report/report_store.h"
#include "muster/report/visit.h"

namespace muster::cli {

// Not thread-safe.
class ReportView {
 public:
  virtual ~ReportView() = default;

  // As report::VisitRows; all that is visited is of one moment. Further statuses are a service's.
  virtual absl::Status Visit(uint64_t batch, const std::string& group,
                             const report::RowVisitor& visitor) = 0;
};

// What `reader` sees, which is not owned.
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

}  // namespace muster::cli
