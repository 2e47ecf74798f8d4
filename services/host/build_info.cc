// SPDX-License-Identifier: Apache-2.0

// Apart from everything else: a new commit compiles this file again.
#include "services/host/build_info.h"

#include "muster/telemetry/otlp/otlp.h"

namespace muster::host {

absl::string_view BuildVersion() { return MUSTER_VERSION; }

absl::string_view BuildRevision() { return MUSTER_REVISION; }

std::string BuildInWords() {
  return telemetry::HasOtlp() ? MUSTER_VERSION " (" MUSTER_REVISION ")"
                              : MUSTER_VERSION " (" MUSTER_REVISION ", without OpenTelemetry)";
}

}  // namespace muster::host
