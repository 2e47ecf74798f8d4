// SPDX-License-Identifier: Apache-2.0
#include "services/controller/forgotten_jobs.h"

#include <memory>
#include <utility>
#include <vector>

#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::controller {

ForgottenJobs::ForgottenJobs(report::ReportStore* report, IsThere is_there, base::Clock* clock)
    : report_(report),
      is_there_(std::move(is_there)),
      clock_(clock),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void ForgottenJobs::Run(const std::stop_token& stop) {
  while (base::SleepUnlessStopped(clock_, kForgetJobsEvery, stop)) {
    base::LogUnlessOk(base::kWarning, "what the report has of deleted jobs stays for now",
                      Sweep(stop));
  }
}

absl::Status ForgottenJobs::Sweep(const std::stop_token& stop) {
  std::vector<std::string> jobs;
  {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<report::ReportReader> reader, report_->Read());
    MUSTER_ASSIGN_OR_RETURN(jobs, reader->JobsWithoutBatches());
  }
  for (const std::string& job : jobs) {
    if (stop.stop_requested()) break;
    MUSTER_ASSIGN_OR_RETURN(const bool is_there, is_there_(job));
    if (is_there) continue;
    MUSTER_RETURN_IF_ERROR(report_->ForgetJob(job));
    base::Log(base::kInfo, "the tables of a deleted job are removed from the report",
              {{"job", job}});
  }
  return absl::OkStatus();
}

}  // namespace muster::controller
