// HandlerVersions: the version of its job's handler that a batch is bound to when its submitter
// does not say.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/roster.h"
#include "muster/job/job.h"
#include "muster/job/job_registry.h"

namespace muster::initiator::submit {

// Thread-safe.
class HandlerVersions {
 public:
  // Nothing is owned. `roster` hears processors from now on.
  HandlerVersions(job::JobRegistry* jobs, bus::Roster* roster, base::Clock* clock);

  // The one that the job's definition names; of a linked handler, the one that most processors
  // have. Empty: no processor is there that has the handler, so that the batch is bound to none.
  // Unavailable: some processors may have it that had no time to say so; ask again. Others as
  // JobRegistry::Get.
  absl::StatusOr<std::string> Current(const job::JobDefinition& job);

 private:
  // Whether every processor that has the job's handler has said so.
  absl::StatusOr<bool> HaveAllSpoken(const std::string& job);

  job::JobRegistry* const jobs_;  // not owned
  bus::Roster* const roster_;     // not owned
  base::Clock* const clock_;      // not owned
  const absl::Duration began_;
};

}  // namespace muster::initiator::submit
