// CheckScaling: whether a scaling agent leads, what hinders it, and what it starts.
#pragma once

#include <vector>

#include "cli/doctor/finding.h"
#include "cli/server/mesh.h"
#include "muster/v1/mesh_service.pb.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::cli {

using ScalingTargets = std::vector<v1::ScalingTarget>;

// Finds nothing where no scaling agent is among the instances: a mesh may do without. Answers the
// targets of the agent that leads, if it starts replicas and does not only say how many it would.
ScalingTargets CheckScaling(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                            Findings* findings);

}  // namespace muster::cli
