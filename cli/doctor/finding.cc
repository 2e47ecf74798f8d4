#include "cli/doctor/finding.h"

#include <ostream>

#include "cli/output/format.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

const char* NameOf(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kUnknown:
      return "unknown";
    case Health::kWarning:
      return "warning";
    case Health::kWrong:
      break;
  }
  return "wrong";
}

}  // namespace

void PrintFindings(const Findings& findings, OutputFormat format, const Environment& environment) {
  ordered_json json = ordered_json::array();
  for (const Finding& finding : findings) {
    if (finding.health == Health::kWrong) environment.exit_code = kError;
    json.push_back({{"health", NameOf(finding.health)},
                    {"what", finding.what},
                    {"found", finding.found},
                    {"to_do", finding.to_do}});
    if (IsStructured(format)) continue;
    *environment.out << NameOf(finding.health) << ": " << Printable(finding.what) << ": "
                     << Printable(finding.found);
    if (!finding.to_do.empty()) *environment.out << "; " << Printable(finding.to_do);
    *environment.out << "\n";
  }
  if (IsStructured(format)) PrintStructured(json, format, environment);
}

}  // namespace muster::cli
