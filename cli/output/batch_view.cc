#include "cli/output/batch_view.h"

#include <ostream>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

absl::StatusOr<BatchView> ViewBatch(const ledger::Batch& batch, report::ReportReader& reader) {
  BatchView view{batch, {}, true};
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
          absl::StrCat(BatchStateName(batch.state), problem.empty() ? "" : ", waits"),
          absl::StrCat(batch.transactions),
          absl::StrCat(progress.aggregated),
          absl::StrCat(progress.rejected),
          absl::StrCat(progress.dead_lettered),
          Rfc3339(batch.created),
          has_ledger ? batch.source_path : "-"};
}

nlohmann::ordered_json BatchView::Json() const {
  nlohmann::ordered_json json = {
      {"batch", batch.number},
      {"job", batch.job},
      {"state", std::string(BatchStateName(batch.state))},
      {"request_id", batch.request_id},
      {"job_revision", batch.job_revision},
      {"handler_version", batch.handler_version},
  };
  if (has_ledger) {
    json["input"] = batch.source_path;
    json["input_bytes"] = batch.source_bytes;
  }
  json["begun"] = Rfc3339(batch.created);
  if (has_ledger) json["items"] = batch.items;
  json["items_counted"] = progress.items();
  json["items_dead"] = progress.items_dead;
  json["transactions"] = batch.transactions;
  json["aggregated"] = progress.aggregated;
  json["rejected"] = progress.rejected;
  json["dead_lettered"] = progress.dead_lettered;
  json["duplicates_dropped"] = progress.duplicates;
  json["attempts"] = progress.attempts;
  if (has_ledger) json["refills"] = batch.refills;
  if (batch.completed.has_value()) json["completed"] = Rfc3339(*batch.completed);
  if (!batch.cancel_reason.empty()) json["cancel_reason"] = batch.cancel_reason;
  if (batch.trace.has_value()) json["traceparent"] = batch.trace->ToTraceparent();
  if (!problem.empty()) json["problem"] = problem;
  return json;
}

void BatchView::PrintRejections(const std::vector<report::RejectionRow>& rows,
                                std::ostream& out) const {
  if (rows.empty()) return;
  Table table;
  table.AddColumn("line", Align::kRight);
  table.AddColumn("rejected because");
  for (const report::RejectionRow& row : rows) {
    table.AddRow({absl::StrCat(row.line), row.reason});
  }
  out << "\n";
  table.PrintTo(out);
  const int64_t more = progress.rejected - static_cast<int64_t>(rows.size());
  if (more > 0) out << "… and " << more << " more\n";
}

}  // namespace muster::cli
