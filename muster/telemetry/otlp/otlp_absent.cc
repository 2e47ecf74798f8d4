// SPDX-License-Identifier: Apache-2.0

// For builds without the OpenTelemetry library.
#include "absl/status/status.h"
#include "muster/telemetry/otlp/environment.h"
#include "muster/telemetry/otlp/otlp.h"

namespace muster::telemetry {

bool HasOtlp() { return false; }

absl::StatusOr<std::unique_ptr<OtlpExport>> OtlpExport::Start(const OtlpResource&,
                                                              const OtlpSettings&, Registry*,
                                                              base::Clock*) {
  return absl::InvalidArgumentError(
      "OTEL_EXPORTER_OTLP_ENDPOINT is set, and this muster was built without the OpenTelemetry "
      "library (Debian's opentelemetry-cpp-dev): unset it, set OTEL_SDK_DISABLED=true, or take a "
      "muster that was built with it (muster --version says so)");
}

}  // namespace muster::telemetry
