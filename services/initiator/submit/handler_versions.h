// SPDX-License-Identifier: Apache-2.0

// HandlerVersions: chooses the handler version that a batch is bound to when its submitter names
// none.
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
  // Nothing is owned. `roster` receives heartbeats from now on: for the first two heartbeat
  // intervals it may lack processors.
  HandlerVersions(job::JobRegistry* jobs, bus::Roster* roster, base::Clock* clock)
      : jobs_(jobs), roster_(roster), clock_(clock), began_(clock->Monotonic()) {}

  // Answers the version that the job's definition names; for a linked handler, the version that
  // most processors have. Empty: no live processor has the handler, so the batch is bound to no
  // version. Unavailable: a processor may have the handler but had no time to report it; ask again.
  // Other errors are those of JobRegistry::Get.
  absl::StatusOr<std::string> Current(const job::JobDefinition& job);

  // Whether live processors have the job's handler, and none of them in this version.
  bool NoneFits(const std::string& job, const std::string& version);

 private:
  // Whether every processor that has the job's handler had time to report it.
  absl::StatusOr<bool> HaveAllSpoken(const std::string& job);

  job::JobRegistry* const jobs_;  // not owned
  bus::Roster* const roster_;     // not owned
  base::Clock* const clock_;      // not owned
  const absl::Duration began_;
};

}  // namespace muster::initiator::submit
