// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/release_metrics.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"

namespace muster::initiator {

std::unique_ptr<telemetry::Reading> ReadReleases(telemetry::Registry* registry,
                                                 release::Releases* releases,
                                                 std::function<bool()> is_connected) {
  const auto read = [releases, is_connected = std::move(is_connected)](
                        telemetry::Samples* samples) -> absl::Status {
    if (!is_connected()) return absl::UnavailableError("there is no connection");
    MUSTER_ASSIGN_OR_RETURN(const std::vector<release::ReleaseState> states, releases->List());
    for (const release::ReleaseState& state : states) {
      samples->Set(telemetry::kReleaseArmed, {state.name}, state.is_open() ? 0 : 1);
      samples->Set(telemetry::kReleasedEpoch, {state.name},
                   static_cast<double>(state.released_epoch));
    }
    return absl::OkStatus();
  };
  return telemetry::ReadAtScrape(
      registry, "releases", {telemetry::kReleaseArmed.entry(), telemetry::kReleasedEpoch.entry()},
      read);
}

}  // namespace muster::initiator
