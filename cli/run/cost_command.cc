// SPDX-License-Identifier: Apache-2.0

// muster cost [BATCH]
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/run/commands.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/queue/cost.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using queue::Idling;
using queue::ShowDollars;

struct CostOptions {
  CommonOptions common;
  std::optional<uint64_t> batch;
  queue::Prices prices;
};

// A batch's runs together; the newest decides how it idles.
struct BatchUsage {
  int runs = 0;
  queue::RunUsage all;
};

absl::StatusOr<BatchUsage> Collect(const CostOptions& options) {
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.common.data_dir));
  const std::string file = backend::DataDirUrls(options.common.data_dir).usage_file;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::RunUsage> runs, queue::ReadUsage(file));
  if (runs.empty()) {
    return absl::NotFoundError(absl::StrCat("no run has ended in ", options.common.data_dir));
  }
  const uint64_t batch = options.batch.value_or(runs.back().batch);
  BatchUsage usage;
  for (const queue::RunUsage& run : runs) {
    if (run.batch != batch) continue;
    ++usage.runs;
    queue::RunUsage sum = run;
    sum.usage.Add(usage.all.usage);
    sum.seconds += usage.all.seconds;
    usage.all = sum;
  }
  if (usage.runs > 0) return usage;
  return absl::NotFoundError(
      absl::StrCat("no run of batch ", batch, " has ended, or none is kept any more"));
}

// The queues that an idle process of the job looks at: the input's partitions and the output.
Idling IdleHour(const queue::RunUsage& run) { return {.calls_per_interval = run.partitions + 1}; }

Idling PollingHour(const queue::RunUsage& run) {
  return {.interval = absl::Seconds(1), .calls_per_interval = run.threads};
}

std::string Count(int64_t number) { return Grouped(static_cast<uint64_t>(number)); }

void PrintTables(const BatchUsage& batch, const queue::Prices& prices, std::ostream& out) {
  const queue::RunUsage& run = batch.all;
  Table table;
  table.AddColumn(absl::StrCat("batch ", run.batch));
  table.AddColumns({"useful", "wasted", "cost"}, Align::kRight);
  for (size_t verb = 0; verb < run.usage.transactions.size(); ++verb) {
    const queue::Transactions& of_verb = run.usage.transactions[verb];
    if (of_verb.total() == 0) continue;
    table.AddRow({std::string(queue::NameOf(static_cast<queue::Verb>(verb))), Count(of_verb.useful),
                  Count(of_verb.wasted),
                  ShowDollars(queue::TransactionCost(of_verb.total(), prices))});
  }
  table.AddRow({"all", Count(run.usage.total() - run.usage.wasted()), Count(run.usage.wasted()),
                ShowDollars(queue::Cost(run.usage, prices))});
  table.PrintTo(out);
  out << absl::StreamFormat(
      "\nruns: %d, %.2f s · idle workers woken by triggers: %s, by safety checks: %s · bus "
      "messages: %s\n\n",
      batch.runs, run.seconds, Count(run.usage.wakeups_push), Count(run.usage.wakeups_safety),
      Count(run.usage.bus_messages));

  Table idle;
  idle.AddColumn("an idle hour");
  idle.AddColumns({"calls", "cost", "cost of a month"}, Align::kRight);
  const auto add = [&](const std::string& who, const Idling& idling) {
    const double hour = queue::TransactionCost(idling.calls(), prices);
    idle.AddRow({who, Count(idling.calls()), ShowDollars(hour),
                 ShowDollars(hour * 24 * queue::kDaysOfAMonth)});
  };
  add(absl::StrCat("muster, ", run.partitions + 1, " queues"), IdleHour(run));
  add(absl::StrCat("a poll each second, ", run.threads, " threads"), PollingHour(run));
  idle.PrintTo(out);
}

nlohmann::ordered_json Json(const BatchUsage& batch, const queue::Prices& prices) {
  const queue::RunUsage& run = batch.all;
  nlohmann::ordered_json operations = nlohmann::ordered_json::object();
  for (size_t verb = 0; verb < run.usage.transactions.size(); ++verb) {
    const queue::Transactions& of_verb = run.usage.transactions[verb];
    if (of_verb.total() == 0) continue;
    operations[std::string(queue::NameOf(static_cast<queue::Verb>(verb)))] = {
        {"useful", of_verb.useful}, {"wasted", of_verb.wasted}};
  }
  const auto idling = [&](const Idling& idle) -> nlohmann::ordered_json {
    return {{"calls", idle.calls()}, {"cost", queue::TransactionCost(idle.calls(), prices)}};
  };
  return {{"batch", run.batch},
          {"runs", batch.runs},
          {"seconds", run.seconds},
          {"operations", operations},
          {"transactions", run.usage.total()},
          {"wasted", run.usage.wasted()},
          {"wakeups_push", run.usage.wakeups_push},
          {"wakeups_safety", run.usage.wakeups_safety},
          {"bus_messages", run.usage.bus_messages},
          {"cost", queue::Cost(run.usage, prices)},
          {"idle_hour", idling(IdleHour(run))},
          {"idle_hour_polling", idling(PollingHour(run))}};
}

absl::Status ShowCost(const CostOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const BatchUsage usage, Collect(options));
  if (!PrintIfStructured(Json(usage, options.prices), options.common, environment)) {
    PrintTables(usage, options.prices, *environment.out);
  }
  return absl::OkStatus();
}

}  // namespace

void AddCost(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<CostOptions>();
  CLI::App* const command =
      AddCommand(app, "cost",
                 "What a batch would cost where calls of a queue are billed, and what idling does",
                 environment, [options, &environment] { return ShowCost(*options, environment); });
  args::Add(command, "BATCH", &options->batch, "Its number; the one that ran last by default");
  args::Add(command, "--price", &options->prices.per_10000_transactions,
            "Dollars for 10,000 storage transactions")
      .Check(args::NonNegativeNumber())
      .CaptureDefaultStr();
  args::Add(command, "--bus-price", &options->prices.per_million_bus_messages,
            "Dollars for a million bus messages")
      .Check(args::NonNegativeNumber())
      .CaptureDefaultStr();
  AddOwnDataDir(command, &options->common);
  AddOutput(command, &options->common);
}

}  // namespace muster::cli
