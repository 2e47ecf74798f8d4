#include "services/initiator/job_lookup.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/job/job_file.h"

namespace muster::initiator {

absl::StatusOr<job::JobDefinition> FindJob(job_registry::JobRegistry* jobs,
                                           const std::string& name) {
  const absl::StatusOr<job_registry::JobEntry> entry = jobs->Get(name);
  if (absl::IsNotFound(entry.status())) {
    return absl::NotFoundError(absl::StrCat("no job '", name, "'"));
  }
  MUSTER_RETURN_IF_ERROR(entry.status());
  return job::ParseJob(entry->definition, entry->name);
}

}  // namespace muster::initiator
