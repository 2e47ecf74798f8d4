#include "services/initiator/batch/job_restore.h"

#include "muster/base/log.h"
#include "muster/base/status_macros.h"

namespace muster::initiator::batch {

absl::Status RestoreJob(const ledger::Batch& batch, job::JobRegistry* jobs, bus::TriggerBus* bus,
                        const std::string& instance) {
  MUSTER_ASSIGN_OR_RETURN(const bool restored, jobs->Restore({.name = batch.job,
                                                              .definition = batch.job_definition,
                                                              .revision = batch.job_revision,
                                                              .updated = batch.created}));
  if (!restored) return absl::OkStatus();
  base::Log(base::kWarning, "put back a job that was lost, from the ledger of its batch",
            {{"job", batch.job}, {"revision", batch.job_revision}, {"batch", batch.number}});
  const absl::Status told =
      bus->Publish({.from = instance, .payload = bus::JobChangedEvent{.job = batch.job}});
  if (told.ok()) return told;
  base::Log(base::kWarning, "others learn of a restored job only when they look for it",
            {{"job", batch.job}, {"why", told.ToString()}});
  return absl::OkStatus();
}

}  // namespace muster::initiator::batch
