// CheckWork: whether a mesh's jobs have workers, and what its queues and batches wait for.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/finding.h"
#include "cli/doctor/scaling_checkup.h"
#include "cli/output/environment.h"
#include "cli/server/mesh.h"
#include "muster/v1/mesh_service.pb.h"

namespace muster::cli {

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
