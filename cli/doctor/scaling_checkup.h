// SPDX-License-Identifier: Apache-2.0

// CheckScaling: checks whether a scaling agent leads, what hinders it, and what it starts.
#pragma once

#include <vector>

#include "cli/doctor/finding.h"
#include "cli/server/mesh_client.h"
#include "muster/v1/mesh_service.pb.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::cli {

using ScalingTargets = std::vector<v1::ScalingTarget>;

// It wants replicas, has none that is ready, and knows why.
bool CannotStart(const v1::ScalingTarget& target);

// Adds no finding if no scaling agent is among the instances: a mesh may do without. Answers the
// targets of the leading agent if it starts replicas; none if it only watches.
ScalingTargets CheckScaling(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                            Findings* findings);

}  // namespace muster::cli
