// RestoreJob: a batch is bound to a revision of its job, which its ledger has too.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/bus/trigger_bus.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::initiator::batch {

// Puts the job of a batch back where the registry has lost it (JobRegistry::Restore), and tells
// processors, as `instance`. Nothing is owned.
absl::Status RestoreJob(const ledger::Batch& batch, job::JobRegistry* jobs, bus::TriggerBus* bus,
                        const std::string& instance);

}  // namespace muster::initiator::batch
