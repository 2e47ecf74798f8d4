// SPDX-License-Identifier: Apache-2.0

// OtlpExport: pushes the telemetry of a process to an OpenTelemetry collector, by OTLP over gRPC:
// spans and log records as they come, metrics now and then.
//
//   SpanSink::Record ─► ExportQueue ─► traces
//   base::Log ─────────► ExportQueue ─► logs
//   Registry::TakeSnapshot, each interval ─► metrics
//
// OpenTelemetry's environment variables set it up, and nothing else (environment.h): without an
// endpoint nothing is sent. docs/tracing.md lists them.
//
// A collector that is away, hangs or is slow never keeps work waiting: spans and records beyond the
// bound of a queue are dropped, and kTelemetryDropped counts them.
//
// muster is also built without the OpenTelemetry library: then Start refuses.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/telemetry/registry.h"
#include "muster/telemetry/span.h"

namespace muster::telemetry {

// What a process says of itself in all that it sends.
struct OtlpResource {
  std::string service;   // service.name: "muster-processor"
  std::string instance;  // service.instance.id
  std::string version;   // service.version
};

// Whether this muster was built with the OpenTelemetry library.
bool HasOtlp();

// Whether the environment asks for telemetry to be sent, or asks for it wrongly or without
// effect, which StartIfWanted tells.
bool WantsOtlp();

struct OtlpSettings;

// Thread-safe.
class OtlpExport {
 public:
  // `registry` and `clock` are not owned and outlive the export. Does not wait for the collector.
  // InvalidArgument: this muster was built without OTLP.
  static absl::StatusOr<std::unique_ptr<OtlpExport>> Start(const OtlpResource& resource,
                                                           const OtlpSettings& settings,
                                                           Registry* registry, base::Clock* clock);
  // Start where the environment asks for it; null: it does not. Logs which of its variables have no
  // effect. InvalidArgument: as Start, or a variable is wrong.
  static absl::StatusOr<std::unique_ptr<OtlpExport>> StartIfWanted(const OtlpResource& resource,
                                                                   Registry* registry,
                                                                   base::Clock* clock);

  // Sends what waits, for a second and as long as calls succeed, and the metrics once more. A
  // collector that does not answer keeps it waiting for kCallPatienceAtEnd at most, whatever time a
  // call may take; the call is then left behind.
  virtual ~OtlpExport() = default;

  // Null: the environment leaves traces out. Lives as long as the export.
  virtual SpanSink* spans() = 0;
};

}  // namespace muster::telemetry
