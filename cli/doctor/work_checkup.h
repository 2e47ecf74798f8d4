// SPDX-License-Identifier: Apache-2.0

// CheckWork: checks whether a mesh's jobs have workers, and what its queues and batches wait for.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/finding.h"
#include "cli/doctor/scaling_checkup.h"
#include "cli/output/environment.h"
#include "cli/server/mesh_client.h"
#include "muster/v1/mesh_service.pb.h"

namespace muster::cli {

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
