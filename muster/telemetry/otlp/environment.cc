// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/log.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/telemetry/otlp/otlp.h"

namespace muster::telemetry {
namespace {

constexpr char kExporterPrefix[] = "OTEL_EXPORTER_OTLP_";

class SettingsReader {
 public:
  explicit SettingsReader(const Variables& variables) : variables_(variables) {}

  absl::StatusOr<OtlpSettings> Read() {
    MUSTER_ASSIGN_OR_RETURN(const bool disabled,
                            BoolOf("OTEL_SDK_DISABLED", Take("OTEL_SDK_DISABLED")));
    if (disabled) return OtlpSettings();
    MUSTER_RETURN_IF_ERROR(ReadSignal(Signal::kTraces, &settings_.traces));
    MUSTER_RETURN_IF_ERROR(ReadSignal(Signal::kMetrics, &settings_.metrics));
    MUSTER_RETURN_IF_ERROR(ReadSignal(Signal::kLogs, &settings_.logs));
    settings_.logs.limits = kLogLimits;
    MUSTER_RETURN_IF_ERROR(ReadBatches("OTEL_BSP_", &settings_.traces));
    MUSTER_RETURN_IF_ERROR(ReadBatches("OTEL_BLRP_", &settings_.logs));
    MUSTER_RETURN_IF_ERROR(ReadSampler());
    MUSTER_RETURN_IF_ERROR(ReadPropagators());
    MUSTER_RETURN_IF_ERROR(ReadMetricSettings());
    MUSTER_RETURN_IF_ERROR(ReadResource());
    WarnOfOthers();
    return std::move(settings_);
  }

 private:
  // A variable that is set to nothing counts as unset, as the specification says.
  std::string Take(const std::string& name) {
    taken_.insert(name);
    const auto found = variables_.find(name);
    return found == variables_.end() ? "" : std::string(absl::StripAsciiWhitespace(found->second));
  }

  // The variable of this signal, or else of all: its name and its value.
  std::pair<std::string, std::string> TakeOf(Signal signal, absl::string_view what) {
    const std::string all = absl::StrCat(kExporterPrefix, what);
    const std::string own =
        absl::StrCat(kExporterPrefix, absl::AsciiStrToUpper(SignalName(signal)), "_", what);
    std::string value = Take(own);
    std::string common = Take(all);
    if (!value.empty()) return {own, std::move(value)};
    return {all, std::move(common)};
  }

  absl::Status ReadSignal(Signal signal, SignalSettings* to) {
    const std::string exporter =
        absl::StrCat("OTEL_", absl::AsciiStrToUpper(SignalName(signal)), "_EXPORTER");
    const std::string chosen = Take(exporter);
    if (!chosen.empty() && chosen != "otlp" && chosen != "none") {
      return Wrong(exporter, chosen,
                   absl::StrCat("write otlp, or none to leave ", SignalName(signal), " out"));
    }
    // Its other variables may say what muster cannot do: that may be why it is left out.
    if (chosen == "none") return absl::OkStatus();
    const auto [protocol, protocol_value] = TakeOf(signal, "PROTOCOL");
    if (!protocol_value.empty() && protocol_value != "grpc") {
      return Wrong(protocol, protocol_value,
                   "muster sends by grpc alone: write grpc, and name the collector's port for gRPC "
                   "(mostly 4317) as the endpoint");
    }
    MUSTER_RETURN_IF_ERROR(ReadConnection(signal, to));
    if (chosen == "otlp" && !to->is_sent()) {
      settings_.warnings.push_back(
          absl::StrCat(exporter, " is otlp, and no endpoint is set: nothing is sent; set ",
                       kExporterPrefix, "ENDPOINT=http://HOST:PORT"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadConnection(Signal signal, SignalSettings* to) {
    if (const auto [name, value] = TakeOf(signal, "ENDPOINT"); !value.empty()) {
      MUSTER_ASSIGN_OR_RETURN(to->endpoint, EndpointOf(name, value));
    }
    if (const auto [name, value] = TakeOf(signal, "TIMEOUT"); !value.empty()) {
      MUSTER_ASSIGN_OR_RETURN(to->timeout, TimeOf(name, value));
      to->has_own_timeout = true;
    }
    if (const auto [name, value] = TakeOf(signal, "COMPRESSION"); !value.empty()) {
      if (value != "gzip" && value != "none") return Wrong(name, value, "write gzip or none");
      to->compressed = value == "gzip";
    }
    // By the specification the endpoint's scheme decides.
    if (const auto [name, value] = TakeOf(signal, "INSECURE"); !value.empty()) {
      MUSTER_ASSIGN_OR_RETURN(const bool insecure, BoolOf(name, value));
      if (insecure && to->has_tls()) {
        return Wrong(name, value, "the endpoint begins with https://; write http:// there");
      }
    }
    MUSTER_RETURN_IF_ERROR(ReadHeaders(signal, to));
    return ReadCertificates(signal, to);
  }

  absl::Status ReadHeaders(Signal signal, SignalSettings* to) {
    const auto [variable, text] = TakeOf(signal, "HEADERS");
    MUSTER_ASSIGN_OR_RETURN(to->headers, PairsOf(variable, text));
    for (auto& [name, value] : to->headers) {
      name = absl::AsciiStrToLower(name);
      const bool is_name = std::all_of(name.begin(), name.end(), base::IsNameCharacter);
      const bool is_value = std::all_of(value.begin(), value.end(),
                                        [](unsigned char c) { return absl::ascii_isprint(c); });
      if (!is_name || !is_value || absl::EndsWith(name, "-bin")) {
        return absl::InvalidArgumentError(
            absl::StrCat(variable,
                         ": a header's name has letters, digits, '-', '_' and '.', and its value "
                         "printable ASCII characters"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadCertificates(Signal signal, SignalSettings* to) {
    const auto [variable, path] = TakeOf(signal, "CERTIFICATE");
    if (!path.empty() && access(path.c_str(), R_OK) != 0) {
      return Wrong(variable, path, "no such file that can be read; name the trusted roots (PEM)");
    }
    to->certificate = path;
    for (const char* what : {"CLIENT_CERTIFICATE", "CLIENT_KEY"}) {
      const auto [name, value] = TakeOf(signal, what);
      if (value.empty()) continue;
      return Wrong(name, value,
                   "muster shows no certificate to a collector; unset it, and send to a collector "
                   "of this host, which does");
    }
    return absl::OkStatus();
  }

  // Of the processor of spans or log records that the specification has between them and the
  // exporter.
  absl::Status ReadBatches(const std::string& prefix, SignalSettings* to) {
    const auto name = [&prefix](absl::string_view what) { return absl::StrCat(prefix, what); };
    ExportLimits& limits = to->limits;
    if (const std::string text = Take(name("SCHEDULE_DELAY")); !text.empty()) {
      MUSTER_ASSIGN_OR_RETURN(limits.linger, TimeOf(name("SCHEDULE_DELAY"), text));
    }
    const std::string waiting = Take(name("MAX_QUEUE_SIZE"));
    if (!waiting.empty()) {
      MUSTER_ASSIGN_OR_RETURN(limits.most_waiting,
                              CountOf(name("MAX_QUEUE_SIZE"), waiting, kMaxWaitingRecords));
      limits.most_together = std::min(limits.most_together, limits.most_waiting);
    }
    if (const std::string text = Take(name("MAX_EXPORT_BATCH_SIZE")); !text.empty()) {
      MUSTER_ASSIGN_OR_RETURN(limits.most_together,
                              CountOf(name("MAX_EXPORT_BATCH_SIZE"), text, limits.most_waiting));
    }
    return ReadExportTimeout(name("EXPORT_TIMEOUT"), to);
  }

  // An export is one call: the shorter of the two times counts.
  absl::Status ReadExportTimeout(const std::string& name, SignalSettings* to) {
    const std::string text = Take(name);
    if (text.empty()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const absl::Duration timeout, TimeOf(name, text));
    to->timeout = to->has_own_timeout ? std::min(to->timeout, timeout) : timeout;
    return absl::OkStatus();
  }

  // muster passes the W3C trace context on, and nothing else.
  absl::Status ReadPropagators() {
    constexpr char kPropagators[] = "OTEL_PROPAGATORS";
    const std::string text = Take(kPropagators);
    if (text.empty() || !settings_.traces.is_sent()) return absl::OkStatus();
    std::vector<std::string> others;
    bool has_trace_context = false;
    for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
      const absl::string_view name = absl::StripAsciiWhitespace(part);
      has_trace_context |= name == "tracecontext";
      if (name != "tracecontext") others.emplace_back(name);
    }
    if (!has_trace_context) {
      return Wrong(kPropagators, text,
                   "muster passes the W3C trace context on: write tracecontext, alone or among "
                   "others, or OTEL_TRACES_EXPORTER=none");
    }
    if (others.empty() || others == std::vector<std::string>{"baggage"}) return absl::OkStatus();
    settings_.warnings.push_back(absl::StrCat(
        kPropagators, ": only tracecontext has an effect, not ", absl::StrJoin(others, ", ")));
    return absl::OkStatus();
  }

  // A caller's own decision counts with each sampler, as if it were parentbased.
  absl::Status ReadSampler() {
    constexpr char kSampler[] = "OTEL_TRACES_SAMPLER";
    const std::string sampler = Take(kSampler);
    if (sampler.empty()) return absl::OkStatus();
    const absl::string_view root = absl::StripPrefix(sampler, "parentbased_");
    if (root == "always_on") {
      settings_.trace_sample = 1;
    } else if (root == "always_off") {
      settings_.trace_sample = 0;
    } else if (root == "traceidratio") {
      MUSTER_ASSIGN_OR_RETURN(settings_.trace_sample, ReadShare());
    } else {
      return Wrong(kSampler, sampler,
                   "write always_on, always_off, or traceidratio with a share in "
                   "OTEL_TRACES_SAMPLER_ARG, each with parentbased_ before it or not");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> ReadShare() {
    constexpr char kShare[] = "OTEL_TRACES_SAMPLER_ARG";
    const std::string text = Take(kShare);
    double share = 1;
    // NaN fails both comparisons.
    if (!text.empty() && !(absl::SimpleAtod(text, &share) && share >= 0 && share <= 1)) {
      return Wrong(kShare, text, "write a share within 0 to 1, such as 0.25");
    }
    return share;
  }

  absl::Status ReadMetricSettings() {
    constexpr char kInterval[] = "OTEL_METRIC_EXPORT_INTERVAL";
    if (const std::string text = Take(kInterval); !text.empty()) {
      int64_t milliseconds = 0;
      if (!absl::SimpleAtoi(text, &milliseconds) || milliseconds <= 0) {
        return Wrong(kInterval, text, "write a number of milliseconds above 0");
      }
      settings_.metric_interval = absl::Milliseconds(milliseconds);
    }
    MUSTER_RETURN_IF_ERROR(ReadExportTimeout("OTEL_METRIC_EXPORT_TIMEOUT", &settings_.metrics));
    constexpr char kTemporality[] = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    const std::string temporality = Take(kTemporality);
    if (temporality.empty() || absl::EqualsIgnoreCase(temporality, "cumulative") ||
        !settings_.metrics.is_sent()) {
      return absl::OkStatus();
    }
    return Wrong(kTemporality, temporality,
                 "muster sends cumulative sums: unset it, and have the collector make deltas");
  }

  absl::Status ReadResource() {
    constexpr char kAttributes[] = "OTEL_RESOURCE_ATTRIBUTES";
    MUSTER_ASSIGN_OR_RETURN(settings_.resource, PairsOf(kAttributes, Take(kAttributes)));
    for (const auto& [name, value] : settings_.resource) {
      if (!base::IsValidUtf8(name) || !base::IsValidUtf8(value)) {
        return absl::InvalidArgumentError(absl::StrCat(kAttributes, " is not UTF-8"));
      }
    }
    // It wins over service.name of the attributes: the last of a name counts.
    const std::string name = Take("OTEL_SERVICE_NAME");
    if (!base::IsValidUtf8(name))
      return absl::InvalidArgumentError("OTEL_SERVICE_NAME is not UTF-8");
    if (!name.empty()) settings_.resource.emplace_back("service.name", name);
    return absl::OkStatus();
  }

  void WarnOfOthers() {
    std::vector<std::string> others;
    for (const auto& [name, value] : variables_) {
      if (!value.empty() && taken_.count(name) == 0) others.push_back(name);
    }
    if (others.empty()) return;
    settings_.warnings.push_back(
        absl::StrCat("without effect here: ", absl::StrJoin(others, ", ")));
  }

  const Variables& variables_;
  std::set<std::string> taken_;
  OtlpSettings settings_;
};

}  // namespace

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

bool SignalSettings::has_tls() const { return absl::StartsWith(endpoint, "https://"); }

const SignalSettings& OtlpSettings::of(Signal signal) const {
  switch (signal) {
    case Signal::kTraces:
      return traces;
    case Signal::kMetrics:
      return metrics;
    case Signal::kLogs:
      break;
  }
  return logs;
}

Variables OtelVariables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    if (!absl::StartsWith(sides.first, "OTEL_") || sides.second.empty()) continue;
    variables.emplace(std::string(sides.first), std::string(sides.second));
  }
  return variables;
}

absl::StatusOr<OtlpSettings> ReadOtlpSettings(const Variables& variables) {
  return SettingsReader(variables).Read();
}

double TraceSampleOr(double share) {
  const absl::StatusOr<OtlpSettings> settings = ReadOtlpSettings(OtelVariables());
  return settings.ok() ? settings->trace_sample.value_or(share) : share;
}

bool WantsOtlp() {
  const absl::StatusOr<OtlpSettings> settings = ReadOtlpSettings(OtelVariables());
  return !settings.ok() || settings->is_sent() || !settings->warnings.empty();
}

absl::StatusOr<std::unique_ptr<OtlpExport>> OtlpExport::StartIfWanted(const OtlpResource& resource,
                                                                      Registry* registry,
                                                                      base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(const OtlpSettings settings, ReadOtlpSettings(OtelVariables()));
  for (const std::string& warning : settings.warnings) {
    base::Log(base::kWarning, "variables of OpenTelemetry", {{"what", warning}});
  }
  if (!settings.is_sent()) return nullptr;
  return Start(resource, settings, registry, clock);
}

}  // namespace muster::telemetry
