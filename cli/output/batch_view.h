// BatchView: a batch as commands show it, from the ledger and the report.
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
  // True: `batch` is the ledger's own record. A server answers less: nothing about the input,
  // uncounted items and refills.
  bool has_ledger = true;
  // Why the batch does not proceed for now, from a server; empty: it proceeds, or there is no
  // server to ask.
  std::string problem{};

  // The cells of `muster batch list`.
  std::vector<std::string> Row() const;
  nlohmann::ordered_json Json() const;
  // The first rejected transactions, with line and reason; `rows` are as many as are shown.
  void PrintRejections(const std::vector<report::RejectionRow>& rows, std::ostream& out) const;
};

// The most rejected transactions that are shown.
inline constexpr int kShownRejections = 20;

absl::StatusOr<BatchView> ViewBatch(const ledger::Batch& batch, report::ReportReader& reader);

// RFC 3339, UTC, milliseconds.
std::string Rfc3339(absl::Time time);

}  // namespace muster::cli
