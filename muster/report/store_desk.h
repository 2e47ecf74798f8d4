// LocalReportClient: the counting desk of the process that has the report.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "muster/report/counting_desk.h"

namespace muster::report {

// Thread-safe.
class LocalReportClient final : public ReportClient {
 public:
  // `report` is not owned and outlives the desk. `check_completion` is the controller's: any thread
  // may call it, and it answers at once.
  LocalReportClient(ReportStore* report, std::function<void(uint64_t batch)> check_completion)
      : report_(report), check_completion_(std::move(check_completion)) {}

  absl::StatusOr<Progress> RegisterBatch(const BatchShape& shape) override;
  absl::StatusOr<Progress> GetProgress(uint64_t batch) override;
  absl::StatusOr<uint64_t> HighestBatch() override;
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override;
  absl::Status CheckCompletion(uint64_t batch) override;
  absl::StatusOr<StoredReceipt> GetReceipt(uint64_t batch) override;
  absl::StatusOr<Tally> GetTally(uint64_t batch) override;
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override;

 private:
  ReportStore* const report_;  // not owned
  const std::function<void(uint64_t batch)> check_completion_;
};

}  // namespace muster::report
