#include "services/initiator/job_lookup.h"

#include "absl/strings/str_cat.h"

namespace muster::initiator {

absl::StatusOr<job::JobDefinition> FindJob(job_registry::JobRegistry* jobs,
                                           const std::string& name) {
  absl::StatusOr<job::JobDefinition> job = jobs->GetDefinition(name);
  if (absl::IsNotFound(job.status())) {
    return absl::NotFoundError(absl::StrCat("no job '", name, "'"));
  }
  return job;
}

}  // namespace muster::initiator
