// SPDX-License-Identifier: Apache-2.0

// Which releases are armed and which are released, read at each scrape.
#pragma once

#include <functional>
#include <memory>

#include "muster/release/releases.h"
#include "muster/telemetry/registry.h"

namespace muster::initiator {

// Neither is owned; `releases` outlives the reading. `is_connected`: the sync store answers now.
// Null if `registry` is null.
std::unique_ptr<telemetry::Reading> ReadReleases(telemetry::Registry* registry,
                                                 release::Releases* releases,
                                                 std::function<bool()> is_connected);

}  // namespace muster::initiator
