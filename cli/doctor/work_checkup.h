// CheckScaling: whether a scaling agent leads, what hinders it, and what it starts.
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

// Finds nothing where no scaling agent is among the instances: a mesh may do without. Answers the
// targets of the agent that leads, if it starts replicas and does not only say how many it would.
ScalingTargets CheckScaling(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                            Findings* findings);

// CheckWork: whether a mesh's jobs have workers, and what its queues and batches wait for.

// What is looked at, and how. Nothing is owned.
struct WorkCheck {
  const CommonOptions* options = nullptr;
  std::string account;  // whose queues
  const Environment* environment = nullptr;
  // Who is there to work, and whom the scaling agent starts.
  const std::vector<v1::Instance>* instances = nullptr;
  const ScalingTargets* started = nullptr;
};

// What cannot be looked at is a finding, too.
void CheckWork(const WorkCheck& check, const MeshClient& mesh, Findings* findings);

}  // namespace muster::cli
