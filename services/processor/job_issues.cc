// SPDX-License-Identifier: Apache-2.0
#include "services/processor/job_issues.h"

#include <set>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/text.h"
#include "muster/handler/health.h"

namespace muster::processor {

void JobIssues::Report(const std::string& job, JobIssue issue) {
  const std::string why = issue.why;
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(by_job_[job], std::move(issue)).why == why) return;
  }
  base::Log(base::kWarning, "cannot work for a job; it is tried again",
            {{"job", job}, {"why", why}});
}

void JobIssues::CanWork(const job::JobSummary& job) {
  base::MutexLock lock(&mu_);
  const auto issue = by_job_.find(job.name);
  if (issue == by_job_.end()) return;
  const std::optional<job::JobSummary>& refused = issue->second.refused;
  const bool stands =
      refused.has_value() && refused->revision == job.revision && refused->updated == job.updated;
  if (!stands) by_job_.erase(issue);
}

void JobIssues::IsAccepted(const std::string& job) {
  base::MutexLock lock(&mu_);
  const auto issue = by_job_.find(job);
  if (issue != by_job_.end() && issue->second.refused.has_value()) by_job_.erase(issue);
}

void JobIssues::KeepOnly(const std::vector<job::JobSummary>& jobs) {
  std::set<std::string> there;
  for (const job::JobSummary& job : jobs) there.insert(job.name);
  base::MutexLock lock(&mu_);
  std::erase_if(by_job_, [&there](const auto& entry) { return !there.contains(entry.first); });
}

std::map<std::string, std::string> JobIssues::OpenIssues() const {
  std::map<std::string, std::string> open_issues;
  base::MutexLock lock(&mu_);
  for (const auto& [job, issue] : by_job_) {
    if (issue.is_others) continue;
    open_issues[job] = base::Printable(issue.why, handler::kMaxIssueBytes);
  }
  return open_issues;
}

}  // namespace muster::processor
