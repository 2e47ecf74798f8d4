// FindJob: a job of the mesh as it is defined now.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/job/job.h"
#include "muster/job_registry/job_registry.h"

namespace muster::initiator {

// NotFound: no such job. Others as JobRegistry::Get. `jobs` is not owned.
absl::StatusOr<job::JobDefinition> FindJob(job_registry::JobRegistry* jobs,
                                           const std::string& name);

}  // namespace muster::initiator
