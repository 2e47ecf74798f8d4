// SPDX-License-Identifier: Apache-2.0

// Fills the records of the OpenTelemetry library with what muster has recorded. Only for the OTLP
// export: the one place where muster meets the types of that library.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/log.h"
#include "muster/base/trace_context.h"
#include "muster/telemetry/snapshot.h"
#include "muster/telemetry/span.h"
#include "opentelemetry/sdk/logs/recordable.h"
#include "opentelemetry/sdk/metrics/export/metric_producer.h"
#include "opentelemetry/sdk/trace/recordable.h"

namespace muster::telemetry {

// A base::LogRecord that may wait.
struct StoredLog {
  explicit StoredLog(const base::LogRecord& record);

  absl::Time time;
  base::LogLevel level;
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields;
  std::optional<base::TraceContext> trace;
};

void Fill(const Span& span, opentelemetry::sdk::trace::Recordable* to);
void Fill(const StoredLog& log, opentelemetry::sdk::logs::Recordable* to);

// `since`: when the process began to count.
std::vector<opentelemetry::sdk::metrics::MetricData> MetricsOf(const Snapshot& snapshot,
                                                               absl::Time since, absl::Time now);

}  // namespace muster::telemetry
