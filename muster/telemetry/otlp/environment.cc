#include "muster/telemetry/otlp/environment.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/telemetry/otlp/otlp.h"

namespace muster::telemetry {
namespace {

constexpr char kIntervalVariable[] = "OTEL_METRIC_EXPORT_INTERVAL";

std::string Variable(const std::string& name) {
  const char* const value =
      std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no thread changes it
  return value == nullptr ? "" : value;
}

}  // namespace

bool WantsOtlp() {
  return !Variable("OTEL_EXPORTER_OTLP_ENDPOINT").empty() &&
         !absl::EqualsIgnoreCase(Variable("OTEL_SDK_DISABLED"), "true");
}

absl::StatusOr<std::unique_ptr<OtlpExport>> OtlpExport::StartIfWanted(const OtlpResource& resource,
                                                                      Registry* registry,
                                                                      base::Clock* clock) {
  if (!WantsOtlp()) return nullptr;
  absl::StatusOr<std::unique_ptr<OtlpExport>> started = Start(resource, registry, clock);
  if (!absl::IsUnimplemented(started.status())) return started;
  base::Log(base::kWarning, "no telemetry is sent", {{"why", started.status().message()}});
  return nullptr;
}

absl::string_view SignalName(Signal signal) {
  switch (signal) {
    case Signal::kTraces:
      return "traces";
    case Signal::kMetrics:
      return "metrics";
    case Signal::kLogs:
      break;
  }
  return "logs";
}

bool WantsSignal(Signal signal) {
  return Variable(absl::StrCat("OTEL_", absl::AsciiStrToUpper(SignalName(signal)), "_EXPORTER")) !=
         "none";
}

absl::StatusOr<absl::Duration> MetricInterval() {
  const std::string text = Variable(kIntervalVariable);
  if (text.empty()) return absl::Minutes(1);
  int64_t milliseconds = 0;
  if (!absl::SimpleAtoi(text, &milliseconds) || milliseconds <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kIntervalVariable, " is '", text, "', not a number of milliseconds above 0"));
  }
  return absl::Milliseconds(milliseconds);
}

bool SetsTimeout(Signal signal) {
  const std::string own =
      absl::StrCat("OTEL_EXPORTER_OTLP_", absl::AsciiStrToUpper(SignalName(signal)), "_TIMEOUT");
  return !Variable("OTEL_EXPORTER_OTLP_TIMEOUT").empty() || !Variable(own).empty();
}

}  // namespace muster::telemetry
