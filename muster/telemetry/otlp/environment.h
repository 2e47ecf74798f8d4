// SPDX-License-Identifier: Apache-2.0

// OtlpSettings: what the variables of OpenTelemetry (OTEL_…) say about the export. muster reads
// them itself, by the specification, and tells the library all that it is to do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/telemetry/export_queue.h"
#include "muster/telemetry/otlp/variable_values.h"

namespace muster::telemetry {

enum class Signal { kTraces, kMetrics, kLogs };

absl::string_view SignalName(Signal signal);  // "traces" …

// How long a call may take, unless the environment says.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(2);

// A call costs as much as some ten spans.
inline constexpr absl::Duration kExportLinger = absl::Milliseconds(50);
inline constexpr ExportLimits kSpanLimits = {.linger = kExportLinger};
// Log records are longer than spans: a call of so many fits what a collector takes, 4 MiB.
inline constexpr ExportLimits kLogLimits = {
    .most_waiting = 4096, .most_together = 256, .linger = kExportLinger};
// The most that the environment may ask for: of records that wait, and of them in one call.
inline constexpr size_t kMaxWaitingRecords = 1'000'000;

// What is sent of one signal, and where.
struct SignalSettings {
  std::string endpoint;  // http://HOST:PORT or https://HOST:PORT; empty: nothing is sent
  absl::Duration timeout = kCallTimeout;
  bool has_own_timeout = false;  // that a variable of the exporter names
  NamesAndValues headers;
  std::string certificate;            // path of trusted roots (PEM); empty: the system's
  bool compressed = false;            // by gzip
  ExportLimits limits = kSpanLimits;  // of spans and log records

  bool is_sent() const { return !endpoint.empty(); }
  bool has_tls() const;
};

struct OtlpSettings {
  SignalSettings traces, metrics, logs;
  absl::Duration metric_interval = absl::Minutes(1);
  // The share of batches to trace of those whose submitter names no trace; nullopt: no sampler is
  // named.
  std::optional<double> trace_sample;
  // Of all that is sent; service.name among them if the environment names one.
  NamesAndValues resource;
  // Variables that have no effect here, each with what to do instead.
  std::vector<std::string> warnings;

  const SignalSettings& of(Signal signal) const;
  bool is_sent() const { return traces.is_sent() || metrics.is_sent() || logs.is_sent(); }
};

// By name.
using Variables = std::map<std::string, std::string>;

// Those of this process that begin with OTEL_ and have a value.
Variables OtelVariables();

// InvalidArgument: a variable is wrong, or asks for what muster cannot do; the message names it,
// and says what to write instead. It never repeats headers, which may be secrets.
absl::StatusOr<OtlpSettings> ReadOtlpSettings(const Variables& variables);

// The share that OTEL_TRACES_SAMPLER of this process names. `share`: it names none, or what
// ReadOtlpSettings refuses.
double TraceSampleOr(double share);

}  // namespace muster::telemetry
