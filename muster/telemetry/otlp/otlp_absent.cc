// For builds without the OpenTelemetry library.
#include "absl/status/status.h"
#include "muster/telemetry/otlp/otlp.h"

namespace muster::telemetry {

absl::StatusOr<std::unique_ptr<OtlpExport>> OtlpExport::Start(const OtlpResource&, Registry*,
                                                              base::Clock*) {
  return absl::UnimplementedError(
      "this muster was built without the OpenTelemetry library (Debian's opentelemetry-cpp-dev)");
}

}  // namespace muster::telemetry
