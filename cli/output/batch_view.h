// A batch as people see it: what the ledger says of it, and what the report has counted.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::cli {

struct BatchView {
  ledger::Batch batch;
  report::Progress progress;  // all zero before anything was counted
  // `batch` is the ledger's own record. A server tells less: nothing of the input, of items that
  // are not counted, and of refills.
  bool has_ledger = true;
  // Why it does not go on for now, as a server says; empty: it does, or nobody is there to tell.
  std::string problem{};

  // The cells of `muster batch list`.
  std::vector<std::string> Row() const;
  nlohmann::ordered_json Json() const;
  // The first rejected transactions, with line and reason; `rows` are as many as are shown.
  void PrintRejections(const std::vector<report::RejectionRow>& rows, std::ostream& out) const;
};

// So many rejected transactions are shown.
inline constexpr int kShownRejections = 20;

absl::StatusOr<BatchView> ViewBatch(const ledger::Batch& batch, report::ReportReader& reader);

// RFC 3339, UTC, milliseconds.
std::string Rfc3339(absl::Time time);

}  // namespace muster::cli
