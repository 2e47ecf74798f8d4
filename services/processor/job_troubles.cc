// SPDX-License-Identifier: Apache-2.0
#include "services/processor/job_troubles.h"

#include <set>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/text.h"
#include "muster/handler/health_troubles.h"

namespace muster::processor {

void JobTroubles::Report(const std::string& job, JobTrouble trouble) {
  const std::string why = trouble.why;
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(by_job_[job], std::move(trouble)).why == why) return;
  }
  base::Log(base::kWarning, "cannot work for a job; it is tried again",
            {{"job", job}, {"why", why}});
}

void JobTroubles::CanWork(const job::JobSummary& job) {
  base::MutexLock lock(&mu_);
  const auto trouble = by_job_.find(job.name);
  if (trouble == by_job_.end()) return;
  const std::optional<job::JobSummary>& refused = trouble->second.refused;
  const bool stands =
      refused.has_value() && refused->revision == job.revision && refused->updated == job.updated;
  if (!stands) by_job_.erase(trouble);
}

void JobTroubles::IsAccepted(const std::string& job) {
  base::MutexLock lock(&mu_);
  const auto trouble = by_job_.find(job);
  if (trouble != by_job_.end() && trouble->second.refused.has_value()) by_job_.erase(trouble);
}

void JobTroubles::KeepOnly(const std::vector<job::JobSummary>& jobs) {
  std::set<std::string> there;
  for (const job::JobSummary& job : jobs) there.insert(job.name);
  base::MutexLock lock(&mu_);
  std::erase_if(by_job_, [&there](const auto& entry) { return !there.contains(entry.first); });
}

std::map<std::string, std::string> JobTroubles::OpenTroubles() const {
  std::map<std::string, std::string> open_troubles;
  base::MutexLock lock(&mu_);
  for (const auto& [job, trouble] : by_job_) {
    if (trouble.is_others) continue;
    open_troubles[job] = base::Printable(trouble.why, handler::kMaxTroubleBytes);
  }
  return open_troubles;
}

}  // namespace muster::processor
