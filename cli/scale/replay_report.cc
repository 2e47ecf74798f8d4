#include "cli/scale/replay_report.h"

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output/structured.h"
#include "cli/output/table.h"
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
  for (const char* title : {"violations", "p50 s", "p95 s", "p99 s", "max s", "replica s", "/ work",
                            "/ oracle", "actions", "idle"}) {
    table.AddColumn(title, Align::kRight);
  }
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

}  // namespace

void WriteReplay(const std::vector<ReplayRow>& rows, OutputFormat format, std::ostream& out) {
  if (format == OutputFormat::kTable) return PrintReplayTable(rows, out);
  if (format == OutputFormat::kCsv) return PrintReplayCsv(rows, out);
  ordered_json json = ordered_json::array();
  for (const ReplayRow& row : rows) json.push_back(ToJson(row));
  out << Structured(json, format);
}

}  // namespace muster::cli
