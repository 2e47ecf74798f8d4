// muster batch list | get | receipt; submit_command.cc, removal_command.cc and cli/scale/quote.cc
// have the others
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/batch/batch_admin.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/scale/quote.h"
#include "cli/server/options.h"
#include "muster/base/status.h"
#include "muster/item/cancelled_receipt.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

// The most rejected transactions that are shown.
constexpr int kShownRejections = 20;

// Batches that a list shows unless it is told otherwise: some screens full.
constexpr int64_t kListedBatches = 100;

struct BatchOptions {
  CommonOptions common;
  uint64_t batch = 0;
  bool verify = false;
  int64_t limit = kListedBatches;
  uint64_t below = std::numeric_limits<uint64_t>::max();
};

std::vector<std::string> RowOf(const BatchView& view) {
  const auto& [batch, progress, has_ledger, problem] = view;
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

ordered_json JsonOf(const BatchView& view) {
  const auto& [batch, progress, has_ledger, problem] = view;
  ordered_json json = {
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
  if (batch.items_deleted) json["items_deleted"] = true;
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

// The first rejected transactions, with line and reason; `rows` are as many as are shown.
void PrintRejections(const std::vector<report::RejectionRow>& rows, int64_t rejected,
                     std::ostream& out) {
  if (rows.empty()) return;
  Table table;
  table.AddColumn("line", Align::kRight);
  table.AddColumn("rejected because");
  for (const report::RejectionRow& row : rows) table.AddRow({absl::StrCat(row.line), row.reason});
  out << "\n";
  table.PrintTo(out);
  const int64_t more = rejected - static_cast<int64_t>(rows.size());
  if (more > 0) out << "… and " << more << " more\n";
}

absl::Status List(const BatchOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const BatchViews views,
                          admin->List(options.below, static_cast<size_t>(options.limit)));
  Table table;
  table.AddColumn("batch", Align::kRight);
  table.AddColumns({"job", "state"});
  table.AddColumns({"transactions", "aggregated", "rejected", "dead-lettered"}, Align::kRight);
  table.AddColumns({"begun", "input"});
  ordered_json json = ordered_json::array();
  for (const BatchView& view : views.batches) {
    table.AddRow(RowOf(view));
    json.push_back(JsonOf(view));
  }
  PrintRows(table, json, options.common, environment);
  if (views.next_below != 0) {
    *environment.err << "muster: there are older batches: muster batch list --below "
                     << views.next_below << "\n";
  }
  return absl::OkStatus();
}

absl::Status Get(const BatchOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const BatchView view, admin->Get(options.batch));
  const ordered_json json = JsonOf(view);
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  for (const auto& [name, value] : json.items()) {
    *environment.out << name << ": "
                     << Printable(value.is_string()
                                      ? value.get<std::string>()
                                      : value.dump(-1, ' ', false,
                                                   ordered_json::error_handler_t::replace))
                     << "\n";
  }
  if (view.progress.rejected == 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<report::RejectionRow> rejections,
                          admin->Rejections(options.batch, kShownRejections));
  PrintRejections(rejections, view.progress.rejected, *environment.out);
  return absl::OkStatus();
}

// The receipt's lines as one JSON object.
ordered_json ReceiptJson(const report::StoredReceipt& receipt) {
  ordered_json json = ordered_json::object();
  for (const absl::string_view line : absl::StrSplit(receipt.text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (pair.first == "items_by_version") {
      const std::pair<std::string, std::string> count =
          absl::StrSplit(pair.second, absl::MaxSplits(' ', 1));
      json[pair.first][count.second] = count.first;
    } else {
      json[pair.first] = pair.second;
    }
  }
  json["checksum"] = receipt.checksum;
  return json;
}

absl::Status PrintReceipt(const BatchOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const report::StoredReceipt stored, admin->Receipt(options.batch));
  if (!PrintIfStructured(ReceiptJson(stored), options.common, environment)) {
    *environment.out << stored.text << "checksum " << stored.checksum << "\n";
  }
  if (item::CountsMayChange(stored)) {
    *environment.err << "muster: batch " << options.batch
                     << " is cancelled; these are the counts so far, and results of items in "
                        "progress may still come\n";
  }
  if (!options.verify) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> differences, admin->Check(options.batch));
  for (const std::string& difference : differences) {
    *environment.err << "muster: receipt of batch " << options.batch << ": "
                     << Printable(difference) << "\n";
  }
  if (!differences.empty()) {
    return absl::DataLossError(absl::StrCat("the store does not prove the receipt of batch ",
                                            options.batch, ": ", differences.size(),
                                            " differences"));
  }
  const absl::StatusOr<BatchView> view = admin->Get(options.batch);
  const bool items_deleted = view.ok() && view->batch.items_deleted;
  *environment.err << (items_deleted ? "verified: the store proves the sums of this receipt; the "
                                       "contents of its items are deleted\n"
                                     : "verified: the store proves this receipt\n");
  return absl::OkStatus();
}

}  // namespace

void AddBatch(CLI::App* app, const Environment& environment) {
  CLI::App* const parent =
      app->add_subcommand("batch", "Quote and submit batches, and look into them");
  parent->require_subcommand(1);
  AddQuoteVerb(parent, environment);
  AddSubmitVerbs(parent, environment);
  const auto options = std::make_shared<BatchOptions>();
  const auto add_verb = [&](const char* name, const char* about, auto verb) {
    CLI::App* const command =
        AddCommand(parent, name, about, environment, [options, verb, &environment] {
          return WithListHint(verb(*options, environment), "muster batch list", options->common);
        });
    AddDataDirOrServer(command, &options->common);
    AddOutput(command, &options->common);
    return command;
  };
  CLI::App* const list = add_verb("list", "The newest batches", List);
  list->add_option("--limit", options->limit, "How many")
      ->check(CLI::Range(int64_t{1}, static_cast<int64_t>(kMaxListedBatches)))
      ->capture_default_str()
      ->type_name("N");
  list->add_option("--below", options->below, "Only batches with lower numbers than this one")
      ->type_name("BATCH");
  CLI::App* const get = add_verb("get", "One batch, with the transactions that it rejected", Get);
  get->add_option("BATCH", options->batch, "Its number")->required();
  AddController(get, &options->common);
  CLI::App* const receipt =
      add_verb("receipt", "The proof of a finished batch; of a cancelled one, what was counted",
               PrintReceipt);
  receipt->add_option("BATCH", options->batch, "Its number")->required();
  receipt->add_flag("--verify", options->verify,
                    "Compute it again from the store; exit 1 if a bit differs");
  AddDelete(parent, environment);
}

}  // namespace muster::cli
