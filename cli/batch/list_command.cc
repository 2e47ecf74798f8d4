// SPDX-License-Identifier: Apache-2.0

// muster batch list
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/batch/batch_admin.h"
#include "cli/batch/batch_view.h"
#include "cli/batch/commands.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/output/one_of.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/base/clock.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/item/batch_filter.h"
#include "muster/os/stop_signals.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using ledger::BatchState;
using nlohmann::ordered_json;

// Batches that a list shows unless it is told otherwise: some screens full.
constexpr int64_t kListedBatches = 100;
// Between two looks of --watch: each asks for one page.
constexpr absl::Duration kWatchInterval = absl::Seconds(2);

struct ListOptions {
  CommonOptions common;
  item::BatchFilter filter;
  std::vector<BatchState> states;
  std::string since;  // as it was given
  int64_t limit = kListedBatches;
  uint64_t after = std::numeric_limits<uint64_t>::max();
  bool watch = false;
  bool calls = false;
};

// "2h": two hours ago; "2026-11-26" and "2026-11-26T08:00:00+01:00": then.
absl::StatusOr<absl::Time> ParseSince(const std::string& text, absl::Time now) {
  if (const auto ago = base::ParseDuration(text); ago.ok()) return now - *ago;
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error) ||
      absl::ParseTime("%Y-%m-%d", text, &time, &error)) {
    return time;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", Printable(text),
      "' is no time: 2h is two hours ago; 2026-11-26 and 2026-11-26T08:00:00Z are times"));
}

std::vector<std::string> RowOf(const BatchView& view) {
  const auto counted = [&view](int64_t count) {
    return view.counts_problem.empty() ? absl::StrCat(count) : "-";
  };
  return {absl::StrCat(view.batch.number),
          view.batch.job,
          StateOf(view),
          absl::StrCat(view.batch.transactions),
          counted(view.progress.aggregated),
          counted(view.progress.rejected),
          counted(view.progress.dead_lettered),
          Rfc3339(view.batch.created),
          view.has_ledger ? view.batch.source_path : "-"};
}

Table TableOf(const std::vector<BatchView>& views) {
  Table table;
  table.AddColumn("batch", Align::kRight);
  table.AddColumns({"job", "state"});
  table.AddColumns({"transactions", "aggregated", "rejected", "dead-lettered"}, Align::kRight);
  table.AddColumns({"begun", "input"});
  for (const BatchView& view : views) table.AddRow(RowOf(view));
  return table;
}

// Once for the whole list: it is the same reason for all.
void TellUnknownCounts(const std::vector<BatchView>& views, const Environment& environment) {
  for (const BatchView& view : views) {
    if (view.counts_problem.empty()) continue;
    *environment.err << "muster: what is counted is not known of each batch ('-'): "
                     << Printable(view.counts_problem) << "\n";
    return;
  }
}

void Print(const BatchViews& views, const ListOptions& options, const Environment& environment) {
  ordered_json json = ordered_json::array();
  for (const BatchView& view : views.batches) json.push_back(JsonOf(view));
  PrintRows(TableOf(views.batches), json, options.common, environment);
  TellUnknownCounts(views.batches, environment);
  if (views.next_below != 0 && !views.batches.empty()) {
    *environment.err << "muster: there are older batches: the same command with --after "
                     << views.next_below << "\n";
  }
}

// A table of the batches that are new or have changed, or one JSON object a line.
void PrintChanges(const std::vector<BatchView>& changed, const ListOptions& options,
                  const Environment& environment) {
  if (changed.empty()) return;
  switch (options.common.output) {
    case OutputFormat::kJson:
      for (const BatchView& view : changed) {
        *environment.out << Structured(JsonOf(view), OutputFormat::kJson);
      }
      break;
    case OutputFormat::kYaml:  // so far a sequence that grows
      for (const BatchView& view : changed) *environment.out << YamlItem(JsonOf(view), 0);
      break;
    default:
      TableOf(changed).PrintTo(*environment.out);
      TellUnknownCounts(changed, environment);
  }
  environment.out->flush();
}

absl::Status WatchList(BatchAdmin& admin, const ListOptions& options,
                       const Environment& environment) {
  const os::StopSignals signals({.grace = absl::Seconds(5),
                                 .exit_code = kInterrupted,
                                 .when_late = "muster: stopped",
                                 .when_hurried = "muster: stopped"});
  std::map<uint64_t, std::string> shown;  // as many as a page has
  while (!signals.token().stop_requested()) {
    MUSTER_ASSIGN_OR_RETURN(const BatchViews views, admin.List(options.filter, options.after,
                                                               static_cast<size_t>(options.limit)));
    std::vector<BatchView> changed;
    std::map<uint64_t, std::string> seen;
    for (const BatchView& view : views.batches) {
      std::string& now = seen[view.batch.number];
      // How late an open batch is by now changes with each look, and is no news.
      for (const std::string& cell : RowOf(view)) absl::StrAppend(&now, cell, "\n");
      const auto before = shown.find(view.batch.number);
      if (before == shown.end() || before->second != now) changed.push_back(view);
    }
    shown.swap(seen);
    PrintChanges(changed, options, environment);
    if (!environment.out->good()) return absl::OkStatus();  // muster::cli::Main tells why
    base::SleepUnlessStopped(environment.clock, kWatchInterval, signals.token());
  }
  return absl::CancelledError("stopped");
}

absl::Status List(ListOptions options, const Environment& environment) {
  options.filter.states = {options.states.begin(), options.states.end()};
  options.filter.hides_calls = !options.calls;
  if (!options.since.empty()) {
    MUSTER_ASSIGN_OR_RETURN(options.filter.since,
                            ParseSince(options.since, environment.clock->Now()));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  if (options.watch) return WatchList(*admin, options, environment);
  MUSTER_ASSIGN_OR_RETURN(const BatchViews views, admin->List(options.filter, options.after,
                                                              static_cast<size_t>(options.limit)));
  Print(views, options, environment);
  return absl::OkStatus();
}

void AddFilter(CLI::App* list, ListOptions* options) {
  args::Add(list, "--job", &options->filter.job, "Only batches of this job");
  args::Add(list, "--state", &options->states, "Only batches in this state; repeatable")
      .Repeatable()
      .Transform(OneOf<BatchState>({{"open", BatchState::kOpen},
                                    {"sealed", BatchState::kSealed},
                                    {"complete", BatchState::kComplete},
                                    {"cancelled", BatchState::kCancelled}}));
  args::Add(list, "--since", &options->since,
            "Only batches begun since then: 2h is two hours ago; or 2026-11-26, in UTC, or "
            "2026-11-26T08:00:00Z")
      .TypeName("TIME");
  args::AddFlag(list, "--late", &options->filter.late,
                "Only batches that ended later than promised, or are later by now");
  AddLabels(list, "Only batches with this label; of several, with all of them",
            &options->filter.labels);
  args::AddFlag(list, "--calls", &options->calls, "Also the batches that calls are made into");
}

}  // namespace

void AddList(CLI::App* batch, const Environment& environment) {
  const auto options = std::make_shared<ListOptions>();
  CLI::App* const list =
      AddCommand(batch, "list", "Batches, the newest first", environment,
                 [options, &environment] { return List(*options, environment); });
  AddDataDirOrServer(list, &options->common);
  AddOutput(list, &options->common);
  AddFilter(list, options.get());
  args::Add(list, "--limit", &options->limit, "How many")
      .Check(args::Range(int64_t{1}, static_cast<int64_t>(kMaxListedBatches)))
      .CaptureDefaultStr()
      .TypeName("N");
  const args::Option after =
      args::Add(list, "--after,--below", &options->after,
                "Go on behind this batch: only older ones, which have lower numbers")
          .TypeName("BATCH");
  args::AddFlag(list, "--watch", &options->watch,
                "Go on, and show each batch that is new or has changed")
      .Excludes(after);
}

}  // namespace muster::cli
