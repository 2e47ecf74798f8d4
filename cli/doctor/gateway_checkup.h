// SPDX-License-Identifier: Apache-2.0

// CheckGateways: whether queue gateways are alive and ready, for `muster doctor`.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/doctor/finding.h"

namespace muster::cli {

// `addresses`: HOST:PORT of the health listener of each (muster-queue-gateway --health). Waits for
// each of them at most for `patience`. Changes nothing.
Findings CheckGateways(const std::vector<std::string>& addresses, absl::Duration patience);

}  // namespace muster::cli
