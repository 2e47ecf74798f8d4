// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/batch_view.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cli/batch/outcome.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"

namespace muster::cli {

using nlohmann::ordered_json;

std::string StateOf(const BatchView& view) {
  std::string state(BatchStateName(view.batch.state));
  const bool is_over = ledger::IsOver(view.batch.state);
  if (!view.problem.empty()) state += is_over ? ", not in the report" : ", waits";
  if (!view.promise.has_value()) return state;
  if (view.promise->late_by > absl::ZeroDuration()) return state + ", late";
  return view.promise->at_risk ? state + ", at risk" : state;
}

std::string RetryText(const report::RejectionRow& row) {
  std::string text;
  if (row.retry_of_line != 0) absl::StrAppend(&text, "of line ", row.retry_of_line);
  if (row.retried_in != 0) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "in batch ", row.retried_in);
  }
  return text;
}

ordered_json JsonOf(const BatchView& view) {
  const ledger::Batch& batch = view.batch;
  const report::Progress& progress = view.progress;
  const auto counted = [&view](int64_t count) {
    return view.counts_problem.empty() ? ordered_json(count) : ordered_json();
  };
  ordered_json json = {
      {"batch", batch.number},
      {"job", batch.job},
      {"state", std::string(BatchStateName(batch.state))},
      {"request_id", batch.request_id},
      {"job_revision", batch.job_revision},
      {"handler_version", batch.handler_version},
  };
  json["labels"] = ordered_json::object();
  for (const auto& [name, value] : batch.labels) json["labels"][name] = value;
  if (view.has_ledger) {
    json["input"] = batch.source_path;
    json["input_bytes"] = batch.source_bytes;
  }
  json["begun"] = Rfc3339(batch.created);
  if (view.has_ledger) json["items"] = batch.items;
  if (batch.items_deleted) json["items_deleted"] = true;
  json["items_counted"] = counted(progress.items());
  json["items_dead"] = counted(progress.items_dead);
  json["transactions"] = batch.transactions;
  json["aggregated"] = counted(progress.aggregated);
  json["rejected"] = counted(progress.rejected);
  json["dead_lettered"] = counted(progress.dead_lettered);
  json["duplicates_dropped"] = counted(progress.duplicates);
  json["attempts"] = counted(progress.attempts);
  if (view.has_ledger) json["refills"] = batch.refills;
  if (batch.completed.has_value()) json["completed"] = Rfc3339(*batch.completed);
  AddMultiline(batch.multiline, &json);
  AddPromise(view.promise, &json);
  if (progress.retry_of != 0) json["retry_of"] = progress.retry_of;
  if (!progress.retried_in.empty()) json["retried_in"] = progress.retried_in;
  if (!progress.replaces.empty()) json["replaces"] = progress.replaces;
  if (progress.replaced_by != 0) json["replaced_by"] = progress.replaced_by;
  if (!batch.cancel_reason.empty()) json["cancel_reason"] = batch.cancel_reason;
  if (batch.trace.has_value()) json["traceparent"] = batch.trace->ToTraceparent();
  if (!view.problem.empty()) json["problem"] = view.problem;
  if (!view.counts_problem.empty()) json["counts_problem"] = view.counts_problem;
  if (!view.removal_problem.empty()) {
    json["removal_problem"] = view.removal_problem;
    json["removal_problem_since"] = Rfc3339(view.removal_problem_since);
  }
  return json;
}

std::string HowToGoOn(const ledger::Batch& batch, const std::string& data_dir) {
  const bool is_upload = !batch.content_path.empty() || !batch.content.empty();
  return absl::StrCat(is_upload ? "`muster up`" : "the `muster run` that began it, once more,",
                      " goes on with it; to give it up, ", HowToGiveUp(batch.number, data_dir));
}

}  // namespace muster::cli
