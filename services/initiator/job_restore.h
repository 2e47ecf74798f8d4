// RestoreJob: a batch is bound to a revision of its job, which its ledger has too.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/job_registry/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/trigger/trigger_bus.h"

namespace muster::initiator {

// Puts the job of a batch back where the registry has lost it (JobRegistry::Restore), and tells
// processors, as `instance`. Nothing is owned.
absl::Status RestoreJob(const ledger::Batch& batch, job_registry::JobRegistry* jobs,
                        trigger::TriggerBus* bus, const std::string& instance);

}  // namespace muster::initiator
