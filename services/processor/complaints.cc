#include "services/processor/complaints.h"

#include <set>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/printable.h"
#include "muster/handler/trouble.h"

namespace muster::processor {

void Complaints::Say(const std::string& job, Complaint complaint) {
  const std::string why = complaint.why;
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(by_job_[job], std::move(complaint)).why == why) return;
  }
  base::Log(base::kWarning, "cannot work for a job; it is tried again",
            {{"job", job}, {"why", why}});
}

void Complaints::CanWork(const job_registry::JobSummary& job) {
  base::MutexLock lock(&mu_);
  const auto complaint = by_job_.find(job.name);
  if (complaint == by_job_.end()) return;
  const std::optional<job_registry::JobSummary>& refused = complaint->second.refused;
  const bool stands =
      refused.has_value() && refused->revision == job.revision && refused->updated == job.updated;
  if (!stands) by_job_.erase(complaint);
}

void Complaints::IsAccepted(const std::string& job) {
  base::MutexLock lock(&mu_);
  const auto complaint = by_job_.find(job);
  if (complaint != by_job_.end() && complaint->second.refused.has_value()) by_job_.erase(complaint);
}

void Complaints::KeepOnly(const std::vector<job_registry::JobSummary>& jobs) {
  std::set<std::string> there;
  for (const job_registry::JobSummary& job : jobs) there.insert(job.name);
  base::MutexLock lock(&mu_);
  std::erase_if(by_job_, [&there](const auto& entry) { return !there.contains(entry.first); });
}

std::map<std::string, std::string> Complaints::Troubles() const {
  std::map<std::string, std::string> troubles;
  base::MutexLock lock(&mu_);
  for (const auto& [job, complaint] : by_job_) {
    if (complaint.is_others) continue;
    troubles[job] = base::Printable(complaint.why, handler::kMaxTroubleBytes);
  }
  return troubles;
}

}  // namespace muster::processor
