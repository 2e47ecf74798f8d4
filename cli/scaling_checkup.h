// CheckScaling: whether a scaling agent leads, and what hinders it.
#pragma once

#include <vector>

#include "cli/finding.h"
#include "cli/mesh.h"
#include "muster/v1/mesh_service.pb.h"

namespace muster::cli {

// Finds nothing where no scaling agent is among the instances: a mesh may do without.
void CheckScaling(const Mesh& mesh, const std::vector<v1::Instance>& instances, Findings* findings);

}  // namespace muster::cli
