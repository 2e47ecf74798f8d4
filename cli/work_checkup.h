// CheckWork: whether a mesh's jobs have workers, and what its queues and batches wait for.
#pragma once

#include <string>
#include <vector>

#include "cli/environment.h"
#include "cli/finding.h"
#include "cli/mesh.h"
#include "muster/v1/mesh_service.pb.h"

namespace muster::cli {

// What is looked at, and how. Nothing is owned.
struct WorkCheck {
  const CommonOptions* options = nullptr;
  std::string account;  // whose queues
  const Environment* environment = nullptr;
};

// What cannot be looked at is a finding, too.
void CheckWork(const WorkCheck& check, const Mesh& mesh, const std::vector<v1::Instance>& instances,
               Findings* findings);

}  // namespace muster::cli
