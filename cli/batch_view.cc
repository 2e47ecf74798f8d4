#include "cli/batch_view.h"

#include <ostream>

#include "absl/strings/str_cat.h"
#include "cli/table.h"
#include "muster/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr int64_t kShownRejections = 20;

}  // namespace

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

absl::StatusOr<BatchView> ViewBatch(const ledger::Batch& batch, report::ReportReader& reader) {
  BatchView view{batch, {}};
  absl::StatusOr<report::Progress> progress = reader.GetProgress(batch.number);
  if (progress.ok()) {
    view.progress = *std::move(progress);
  } else if (!absl::IsNotFound(progress.status())) {
    return progress.status();
  }
  return view;
}

std::vector<std::string> BatchView::Row() const {
  return {absl::StrCat(batch.number),
          batch.job,
          std::string(BatchStateName(batch.state)),
          absl::StrCat(batch.transactions),
          absl::StrCat(progress.aggregated),
          absl::StrCat(progress.rejected),
          absl::StrCat(progress.dead_lettered),
          Rfc3339(batch.created),
          batch.source_path};
}

nlohmann::ordered_json BatchView::Json() const {
  nlohmann::ordered_json json = {
      {"batch", batch.number},
      {"job", batch.job},
      {"state", std::string(BatchStateName(batch.state))},
      {"request_id", batch.request_id},
      {"job_revision", batch.job_revision},
      {"handler_version", batch.handler_version},
      {"input", batch.source_path},
      {"input_bytes", batch.source_bytes},
      {"begun", Rfc3339(batch.created)},
      {"items", batch.items},
      {"items_counted", progress.items()},
      {"items_dead", progress.items_dead},
      {"transactions", batch.transactions},
      {"aggregated", progress.aggregated},
      {"rejected", progress.rejected},
      {"dead_lettered", progress.dead_lettered},
      {"duplicates_dropped", progress.duplicates},
      {"attempts", progress.attempts},
      {"refills", batch.refills},
  };
  if (batch.completed.has_value()) json["completed"] = Rfc3339(*batch.completed);
  return json;
}

absl::Status BatchView::PrintRejections(report::ReportReader& reader, std::ostream& out) const {
  if (progress.rejected == 0) return absl::OkStatus();
  Table table;
  table.AddColumn("line", Align::kRight);
  table.AddColumn("rejected because");
  MUSTER_RETURN_IF_ERROR(reader.ForEachRejection(
      batch.number, 0, kShownRejections, [&table](const report::RejectionRow& row) {
        table.AddRow({absl::StrCat(row.line), row.reason});
      }));
  out << "\n";
  table.PrintTo(out);
  if (progress.rejected > kShownRejections) {
    out << "… and " << progress.rejected - kShownRejections << " more\n";
  }
  return absl::OkStatus();
}

}  // namespace muster::cli
