// SPDX-License-Identifier: Apache-2.0

// CheckScaling: checks whether a scaling agent leads, what hinders it, and what it starts.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/finding.h"
#include "cli/output/environment.h"
#include "cli/server/mesh_client.h"
#include "muster/v1/mesh_service.pb.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::cli {

using ScalingTargets = std::vector<v1::ScalingTarget>;

// Adds no finding if no scaling agent is among the instances: a mesh may do without. Answers the
// targets of the leading agent if it starts replicas; none if it only watches.
ScalingTargets CheckScaling(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                            Findings* findings);

// CheckWork: checks whether a mesh's jobs have workers, and what its queues and batches wait for.

// What CheckWork looks at, and how. Nothing is owned.
struct WorkCheck {
  const CommonOptions* options = nullptr;
  std::string account;  // of the queues
  const Environment* environment = nullptr;
  // The live instances, and the targets for which the scaling agent starts replicas.
  const std::vector<v1::Instance>* instances = nullptr;
  const ScalingTargets* started = nullptr;
};

// What cannot be checked is a finding, too.
void CheckWork(const WorkCheck& check, const MeshClient& mesh, Findings* findings);

}  // namespace muster::cli
