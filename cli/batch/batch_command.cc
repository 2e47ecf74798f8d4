// muster batch list | get | receipt; submit_command.h and cli/scale/quote.h have the others
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/batch/batch_admin.h"
#include "cli/batch/commands.h"
#include "cli/batch/submit_command.h"
#include "cli/output/batch_view.h"
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

struct BatchOptions {
  CommonOptions common;
  uint64_t batch = 0;
  bool verify = false;
};

absl::Status List(const BatchOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<BatchView> batches, admin->List());
  Table table;
  table.AddColumn("batch", Align::kRight);
  table.AddColumn("job");
  table.AddColumn("state");
  for (const char* column : {"transactions", "aggregated", "rejected", "dead-lettered"}) {
    table.AddColumn(column, Align::kRight);
  }
  table.AddColumn("begun");
  table.AddColumn("input");
  ordered_json json = ordered_json::array();
  for (const BatchView& view : batches) {
    table.AddRow(view.Row());
    json.push_back(view.Json());
  }
  if (IsStructured(options.common.output)) {
    PrintStructured(json, options.common.output, environment);
  } else {
    table.PrintTo(*environment.out);
  }
  return absl::OkStatus();
}

absl::Status Get(const BatchOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const BatchView view, admin->Get(options.batch));
  const ordered_json json = view.Json();
  if (IsStructured(options.common.output)) {
    PrintStructured(json, options.common.output, environment);
    return absl::OkStatus();
  }
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
  view.PrintRejections(rejections, *environment.out);
  return absl::OkStatus();
}

absl::Status PrintReceipt(const BatchOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  MUSTER_ASSIGN_OR_RETURN(const report::StoredReceipt stored, admin->Receipt(options.batch));
  if (IsStructured(options.common.output)) {
    PrintStructured(ReceiptJson(stored), options.common.output, environment);
  } else {
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
  *environment.err << "verified: the store proves this receipt\n";
  return absl::OkStatus();
}

using Verb = std::function<absl::Status(const BatchOptions&, const Environment&)>;

}  // namespace

void AddBatch(CLI::App* app, const Environment& environment) {
  CLI::App* const parent =
      app->add_subcommand("batch", "Quote and submit batches, and look into them");
  parent->require_subcommand(1);
  AddQuoteVerb(parent, environment);
  AddSubmitVerbs(parent, environment);
  const auto options = std::make_shared<BatchOptions>();
  const auto add_verb = [&](const char* name, const char* about, Verb verb) {
    CLI::App* const command = parent->add_subcommand(name, about);
    AddDataDirOrServer(command, &options->common);
    AddOutput(command, &options->common, Csv::kNo);
    command->callback([options, verb = std::move(verb), &environment] {
      if (const absl::Status status = verb(*options, environment); !status.ok()) {
        environment.Fail(WithListHint(status, "muster batch list", options->common));
      }
    });
    return command;
  };
  add_verb("list", "All batches", List);
  CLI::App* const get = add_verb("get", "One batch, with the transactions that it rejected", Get);
  get->add_option("BATCH", options->batch, "Its number")->required();
  AddController(get, &options->common);
  CLI::App* const receipt =
      add_verb("receipt", "The proof of a finished batch; of a cancelled one, what was counted",
               PrintReceipt);
  receipt->add_option("BATCH", options->batch, "Its number")->required();
  receipt->add_flag("--verify", options->verify,
                    "Compute it again from the store; exit 1 if a bit differs");
}

}  // namespace muster::cli
