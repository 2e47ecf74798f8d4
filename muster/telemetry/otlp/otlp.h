// OtlpExport: pushes the telemetry of a process to an OpenTelemetry collector, by OTLP over gRPC:
// spans and log records as they come, metrics now and then.
//
//   SpanSink::Record ─► ExportQueue ─► traces
//   base::Log ─────────► ExportQueue ─► logs
//   Registry::TakeSnapshot, each interval ─► metrics
//
// OpenTelemetry's environment variables set it up, and nothing else:
//
//   OTEL_EXPORTER_OTLP_ENDPOINT   http://HOST:PORT or https://HOST:PORT; without it nothing is sent
//   OTEL_EXPORTER_OTLP_{HEADERS,CERTIFICATE,TIMEOUT,INSECURE}, also for one signal (…_TRACES_…)
//   OTEL_{TRACES,METRICS,LOGS}_EXPORTER=none    leaves a signal out
//   OTEL_METRIC_EXPORT_INTERVAL   milliseconds; 60000
//   OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES   in addition to what muster says of itself
//   OTEL_SDK_DISABLED=true        nothing is sent
//
// A collector that is away, hangs or is slow never keeps work waiting: spans and records beyond the
// bound of a queue are dropped, and kTelemetryDropped counts them.
//
// muster is also built without the OpenTelemetry library: then Start answers Unimplemented.
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

// Whether the environment asks for telemetry to be sent.
bool WantsOtlp();

// Thread-safe.
class OtlpExport {
 public:
  // `registry` and `clock` are not owned and outlive the export. Does not wait for the collector.
  // Unimplemented: this muster was built without OTLP. InvalidArgument: a variable is wrong.
  static absl::StatusOr<std::unique_ptr<OtlpExport>> Start(const OtlpResource& resource,
                                                           Registry* registry, base::Clock* clock);
  // Start where the environment asks for it. Null: it does not, or this muster was built without
  // OTLP, which a log line tells. InvalidArgument: as Start.
  static absl::StatusOr<std::unique_ptr<OtlpExport>> StartIfWanted(const OtlpResource& resource,
                                                                   Registry* registry,
                                                                   base::Clock* clock);

  // Sends what waits, for a second and as long as calls succeed, and the metrics once more. A
  // collector that does not answer keeps it waiting for the time-out of two calls at most, each of
  // 2 s unless the environment says otherwise.
  virtual ~OtlpExport() = default;

  // Null: the environment leaves traces out. Lives as long as the export.
  virtual SpanSink* spans() = 0;
};

}  // namespace muster::telemetry
