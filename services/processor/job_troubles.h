// SPDX-License-Identifier: Apache-2.0

// JobTroubles: the reasons why a processor does not work for jobs. It logs each reason once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/job/job_registry.h"

namespace muster::processor {

struct JobTrouble {
  std::string why;
  // The job as its handler refused it; nullopt: the handler refused nothing.
  std::optional<job::JobSummary> refused = std::nullopt;
  bool is_others = false;  // the job's linked handler is not in this program
};

// Thread-safe. The latest trouble with a job stays open until it is taken back.
class JobTroubles {
 public:
  // Records what is wrong with a job, and logs it unless it is the same as before.
  void Report(const std::string& job, JobTrouble trouble);

  // The processor can work for `job`, as far as it knows before the handler is called. A refusal by
  // the handler stays until the job is applied again.
  void CanWork(const job::JobSummary& job);
  // The handler accepts the job.
  void IsAccepted(const std::string& job);
  // Drops the troubles of all jobs that are not in `jobs`: they were deleted.
  void KeepOnly(const std::vector<job::JobSummary>& jobs);

  // The open troubles by job, printable and of bounded length, without jobs whose handler only
  // other programs have.
  std::map<std::string, std::string> OpenTroubles() const;

 private:
  mutable base::Mutex mu_;
  std::map<std::string, JobTrouble> by_job_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::processor
