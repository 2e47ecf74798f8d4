// SPDX-License-Identifier: Apache-2.0

// muster batch get | receipt; list_command.cc, submit_command.cc, removal_command.cc,
// retry_command.cc, batch_output.cc and cli/scale/quote.cc have the others
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/batch/batch_admin.h"
#include "cli/batch/batch_view.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/scale/quote.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/status.h"
#include "muster/item/cancelled_receipt.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

// The most rejected transactions that are shown.
constexpr int kShownRejections = 20;

struct BatchOptions {
  CommonOptions common;
  uint64_t batch = 0;
  bool verify = false;
};

// The first rejected transactions, with line and reason; `rows` are as many as are shown.
void PrintRejections(const std::vector<report::RejectionRow>& rows, int64_t rejected,
                     std::ostream& out) {
  if (rows.empty()) return;
  const bool any_retry = std::any_of(rows.begin(), rows.end(),
                                     [](const auto& row) { return !RetryText(row).empty(); });
  Table table;
  table.AddColumn("line", Align::kRight);
  table.AddColumn("rejected because");
  if (any_retry) table.AddColumn("retry");
  for (const report::RejectionRow& row : rows) {
    std::vector<std::string> cells = {absl::StrCat(row.line), row.reason};
    if (any_retry) cells.push_back(RetryText(row));
    table.AddRow(std::move(cells));
  }
  out << "\n";
  table.PrintTo(out);
  const int64_t more = rejected - static_cast<int64_t>(rows.size());
  if (more > 0) out << "… and " << more << " more\n";
}

absl::Status Get(const BatchOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const BatchView view, admin->Get(options.batch));
  // What is over waits for nothing: the problem of such a batch is that its counts are wrong.
  if (!view.problem.empty() && ledger::IsOver(view.batch.state)) environment.exit_code = kDamaged;
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
      args::AddSubcommand(app, "batch", "Quote and submit batches, and look into them");
  args::RequireSubcommand(parent);
  AddQuoteVerb(parent, environment);
  AddSubmitVerbs(parent, environment);
  AddList(parent, environment);
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
  CLI::App* const get = add_verb("get", "One batch, with the transactions that it rejected", Get);
  args::Add(get, "BATCH", &options->batch, "Its number").Required();
  AddController(get, &options->common);
  CLI::App* const receipt =
      add_verb("receipt", "The proof of a finished batch; of a cancelled one, what was counted",
               PrintReceipt);
  args::Add(receipt, "BATCH", &options->batch, "Its number").Required();
  args::AddFlag(receipt, "--verify", &options->verify,
                "Compute it again from the store; exit 1 if a bit differs");
  AddFailures(parent, environment);
  AddRetry(parent, environment);
  AddBatchOutput(parent, environment);
  AddDelete(parent, environment);
}

}  // namespace muster::cli
