// SPDX-License-Identifier: Apache-2.0

// Prints how policies fared.

#include <fstream>
#include <iosfwd>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/scale/commands.h"
#include "cli/scale/replay_options.h"
#include "muster/args/command.h"
#include "muster/base/status.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/recording/recording_replay.h"
#include "muster/scaling/replay/plot.h"
#include "muster/scaling/replay/replay.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/scaling/rules/rules_file.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

namespace {

using nlohmann::ordered_json;
using scaling::replay::Metrics;
using scaling::replay::ReplayRow;

double LatencySeconds(const Metrics& metrics, double share) {
  return static_cast<double>(metrics.latencies.Percentile(share)) / 1e6;
}

ordered_json ToJson(const ReplayRow& row) {
  const Metrics& metrics = row.metrics;
  return {{"policy", row.policy},
          {"settings", row.settings},
          {"items", metrics.items},
          {"violations", metrics.violations},
          {"violation_ratio", metrics.violation_ratio()},
          {"p50_s", LatencySeconds(metrics, 0.50)},
          {"p95_s", LatencySeconds(metrics, 0.95)},
          {"p99_s", LatencySeconds(metrics, 0.99)},
          {"max_s", static_cast<double>(metrics.latencies.max_us()) / 1e6},
          {"replica_seconds", metrics.replica_seconds},
          {"work_seconds", metrics.work_seconds},
          {"cost_over_work", metrics.cost_over_work()},
          {"cost_over_oracle", row.cost_over_oracle},
          {"actions", metrics.actions},
          {"decision_hash", metrics.decision_hash}};
}

std::string Seconds(double seconds) { return absl::StrFormat("%.1f", seconds); }

void PrintReplayTable(const std::vector<ReplayRow>& rows, std::ostream& out) {
  Table table;
  table.AddColumn("policy");
  table.AddColumns({"violations", "p50 s", "p95 s", "p99 s", "max s", "replica s", "/ work",
                    "/ oracle", "actions", "idle"},
                   Align::kRight);
  for (const ReplayRow& row : rows) {
    const Metrics& metrics = row.metrics;
    table.AddRow({row.policy, absl::StrFormat("%.3f%%", 100 * metrics.violation_ratio()),
                  Seconds(LatencySeconds(metrics, 0.50)), Seconds(LatencySeconds(metrics, 0.95)),
                  Seconds(LatencySeconds(metrics, 0.99)),
                  Seconds(static_cast<double>(metrics.latencies.max_us()) / 1e6),
                  Grouped(static_cast<uint64_t>(metrics.replica_seconds + 0.5)),
                  absl::StrFormat("%.3f", metrics.cost_over_work()),
                  absl::StrFormat("%.3f", row.cost_over_oracle),
                  Grouped(static_cast<uint64_t>(metrics.actions)),
                  absl::StrFormat("%.1f%%", 100 * metrics.idle_share())});
  }
  table.PrintTo(out);
}

void PrintReplayCsv(const std::vector<ReplayRow>& rows, std::ostream& out) {
  Table table;
  const ordered_json titles = ToJson(ReplayRow{});
  for (const auto& [name, value] : titles.items()) table.AddColumn(name);
  for (const ReplayRow& row : rows) {
    std::vector<std::string> cells;
    const ordered_json json = ToJson(row);
    for (const auto& [name, value] : json.items()) {
      cells.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.AddRow(std::move(cells));
  }
  table.PrintCsvTo(out);
}

// JSON and YAML: an array of objects, a policy each, with all figures. CSV: the same columns.
// Table: what fits a terminal.
void WriteReplay(const std::vector<ReplayRow>& rows, OutputFormat format, std::ostream& out) {
  if (format == OutputFormat::kTable) return PrintReplayTable(rows, out);
  if (format == OutputFormat::kCsv) return PrintReplayCsv(rows, out);
  ordered_json json = ordered_json::array();
  for (const ReplayRow& row : rows) json.push_back(ToJson(row));
  out << Structured(json, format);
}

// muster replay --recording FILE

using scaling::recording::RecordingVerdict;

// The policy of a recording's header, held to rules from when they are first recorded.
class RecordedPolicy final : public scaling::policy::Policy {
 public:
  RecordedPolicy(std::string target, std::unique_ptr<scaling::policy::Policy> policy)
      : target_(std::move(target)), free_(std::move(policy)) {}

  absl::Status Use(const std::string& text) {
    MUSTER_ASSIGN_OR_RETURN(scaling::rules::Rules parsed,
                            scaling::rules::ParseRules(text, "recorded rules"));
    const auto rules = std::make_shared<const scaling::rules::Rules>(std::move(parsed));
    if (ruled_ != nullptr) return ruled_->Use(rules);
    MUSTER_ASSIGN_OR_RETURN(ruled_,
                            scaling::rules::RuledPolicy::Make(rules, target_, std::move(free_)));
    return absl::OkStatus();
  }

  // Without rules there is no budget.
  void Resume(const scaling::policy::Spending& spending) {
    if (ruled_ != nullptr) ruled_->Resume(spending);
  }

  void Announce(const scaling::policy::Announcement& announcement) override {
    policy().Announce(announcement);
  }
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation) override {
    return policy().Decide(observation);
  }

 private:
  scaling::policy::Policy& policy() { return ruled_ != nullptr ? *ruled_ : *free_; }

  const std::string target_;
  std::unique_ptr<scaling::policy::Policy> free_;  // until there are rules
  std::unique_ptr<scaling::rules::RuledPolicy> ruled_;
};

ordered_json DifferenceJson(const std::optional<RecordingVerdict::Difference>& difference) {
  if (!difference.has_value()) return nullptr;
  return {{"file", difference->file},
          {"line", difference->line},
          {"at", absl::FormatTime(absl::RFC3339_full, difference->at, absl::UTCTimeZone())},
          {"recorded", ordered_json::parse(difference->recorded)},
          {"replayed", ordered_json::parse(difference->replayed)}};
}

bool BeginsLate(const RecordingVerdict& verdict) { return verdict.first_part > 1; }

std::string SummaryOf(const RecordingVerdict& verdict) {
  if (!verdict.first_difference.has_value()) return "all are the same";
  if (!BeginsLate(verdict)) return "the last one differs";
  return absl::StrCat(verdict.differences,
                      " differ, which proves little: the recording begins with part ",
                      verdict.first_part, ", and lacks what the policy knew before");
}

void PrintVerdict(const RecordingVerdict& verdict, const std::string& target,
                  const CommonOptions& options, const Environment& environment) {
  const bool same = !verdict.first_difference.has_value();
  const ordered_json json = {{"target", target},
                             {"announcements", verdict.announcements},
                             {"decisions", verdict.decisions},
                             {"first_part", verdict.first_part},
                             {"same", same},
                             {"differences", verdict.differences},
                             {"first_difference", DifferenceJson(verdict.first_difference)}};
  if (PrintIfStructured(json, options, environment)) return;
  std::ostream& out = *environment.out;
  out << target << ": " << verdict.decisions << " decisions, " << verdict.announcements
      << " announcements: " << SummaryOf(verdict) << "\n";
  if (same || BeginsLate(verdict)) return;
  out << "recorded: " << verdict.first_difference->recorded << "\n"
      << "replayed: " << verdict.first_difference->replayed << "\n";
}

// Decides the recorded run anew and says whether the decisions are the same. FailedPrecondition:
// they are not; the first difference is printed.
absl::Status RunRecording(const ReplayOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<scaling::recording::RecordingReader> reader,
                          scaling::recording::RecordingReader::Open(options.recording_file));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<scaling::policy::Policy> deadline,
                          scaling::policy::MakeDeadlinePolicy(reader->header().policy));
  RecordedPolicy policy(reader->header().target, std::move(deadline));
  MUSTER_ASSIGN_OR_RETURN(
      const RecordingVerdict verdict,
      scaling::recording::ReplayRecording(
          reader.get(), &policy, [&policy](const std::string& text) { return policy.Use(text); },
          [&policy](const scaling::policy::Spending& spending) { policy.Resume(spending); }));
  PrintVerdict(verdict, reader->header().target, options.common, environment);
  if (!verdict.first_difference.has_value() || BeginsLate(verdict)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(verdict.first_difference->file, " line ",
                                                    verdict.first_difference->line,
                                                    ": the policy decides otherwise now"));
}

// muster replay

absl::Status WritePlot(const scaling::replay::Plot& plot, const std::string& path) {
  std::ofstream file(path, std::ios::trunc | std::ios::binary);
  file << plot.ToSvg() << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("the plot '", path, "' cannot be written"));
}

absl::Status RunReplay(ReplayOptions* options, const Environment& environment) {
  scaling::replay::ReplayRequest request;
  MUSTER_ASSIGN_OR_RETURN(request.policies, ComposePolicies(options));
  request.options = options->sim;
  request.seeds = options->seeds;
  MUSTER_ASSIGN_OR_RETURN(const scaling::replay::Trace trace,
                          scaling::replay::ReadTrace(options->trace_file, options->trace));
  scaling::replay::Plot plot(trace, absl::ToInt64Seconds(2 * options->sim.sla));
  if (!options->plot_file.empty()) {
    request.sink_of = [&plot](const scaling::replay::PolicyEntry& entry) {
      return plot.AddPolicy(entry.name);
    };
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<scaling::replay::ReplayRow> rows,
                          scaling::replay::Replay(trace, request));
  if (!options->plot_file.empty()) {
    MUSTER_RETURN_IF_ERROR(WritePlot(plot, options->plot_file));
  }
  WriteReplay(rows, options->common.output, *environment.out);
  return absl::OkStatus();
}

// What is missing cannot be said to CLI11: it depends on what else is there.
void CheckUsage(const ReplayOptions& options) {
  if (!options.recording_file.empty()) {
    if (!options.trace_file.empty()) args::RefuseBoth("--recording", "--trace");
    return;
  }
  if (options.trace_file.empty()) args::RefuseMissing("--trace");
  if (options.sim.service_time == absl::ZeroDuration()) args::RefuseMissing("--service-time");
  if (options.sim.sla == absl::ZeroDuration() && options.rules_file.empty()) {
    args::RefuseMissing("--sla");
  }
}

}  // namespace

void AddReplay(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<ReplayOptions>();
  const auto run = [options, &environment] {
    CheckUsage(*options);
    return options->recording_file.empty() ? RunReplay(options.get(), environment)
                                           : RunRecording(*options, environment);
  };
  CLI::App* const command =
      AddCommand(app, "replay", "How scaling policies would have fared on a trace of arrivals",
                 environment, run);
  AddReplayOptions(command, options.get());
}

}  // namespace muster::cli
