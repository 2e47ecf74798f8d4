// The variables of OpenTelemetry that muster reads itself; the library reads the others.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::telemetry {

enum class Signal { kTraces, kMetrics, kLogs };

absl::string_view SignalName(Signal signal);  // "traces" …

// Whether OTEL_<SIGNAL>_EXPORTER leaves the signal in: it does unless it is "none".
bool WantsSignal(Signal signal);

// OTEL_METRIC_EXPORT_INTERVAL, or a minute. InvalidArgument: it is no positive number of
// milliseconds.
absl::StatusOr<absl::Duration> MetricInterval();

// Whether the environment sets how long a call of this signal may take.
bool SetsTimeout(Signal signal);

}  // namespace muster::telemetry
