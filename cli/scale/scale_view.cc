#include "cli/scale/scale_view.h"

#include <ostream>

#include "absl/strings/str_format.h"
#include "cli/output/structured.h"

namespace muster::cli {

using nlohmann::ordered_json;

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string RateCell(double items_per_second) {
  return items_per_second > 0 ? absl::StrFormat("%.1f/s", items_per_second) : "not known";
}

ordered_json CountsJson(const v1::ReplicaCounts& counts) {
  return {{"ready", counts.ready()},
          {"starting", counts.starting()},
          {"draining", counts.draining()},
          {"standby", counts.standby()},
          {"tasks", counts.tasks()}};
}

void PrintRows(const Table& table, const ordered_json& json, OutputFormat format,
               const Environment& environment) {
  switch (format) {
    case OutputFormat::kTable:
      return table.PrintTo(*environment.out);
    case OutputFormat::kCsv:
      return table.PrintCsvTo(*environment.out);
    case OutputFormat::kJson:
    case OutputFormat::kYaml:
      PrintStructured(json, format, environment);
  }
}

}  // namespace muster::cli
