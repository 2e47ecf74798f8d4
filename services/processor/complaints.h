// HealthIssues: why a processor does not work for jobs. Each is said once in its log.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/job/job_registry.h"

namespace muster::processor {

struct HealthIssue {
  std::string why;
  // What the job's handler has refused; nullopt: it did not come to that.
  std::optional<job::JobSummary> refused = std::nullopt;
  bool is_others = false;  // the job's linked handler is not in this program
};

// Thread-safe. The last issue about a job stands until it is taken back.
class HealthIssues {
 public:
  // One line in the log for what is wrong with a job, until something else is.
  void Report(const std::string& job, HealthIssue issue);

  // `job` can be worked for, as far as that shows before its handler is called: what the handler
  // has refused stands, until it has another job to look at.
  void CanWork(const job::JobSummary& job);
  // Its handler takes the job.
  void IsAccepted(const std::string& job);
  // Takes back what was said of all other jobs, which are no more.
  void KeepOnly(const std::vector<job::JobSummary>& jobs);

  // What stands, by job, printable and of bounded length; without that which is others' work.
  std::map<std::string, std::string> OpenIssues() const;

 private:
  mutable base::Mutex mu_;
  std::map<std::string, HealthIssue> by_job_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::processor
