// SPDX-License-Identifier: Apache-2.0

// ForgottenJobs: takes out of the report what it has of jobs that were deleted: the tables of their
// groups, which would stay in it, and in the memory of all that have it open, for ever.
//
// A job that is there keeps its tables, empty or not, so that what people have written to read them
// goes on. One that was deleted keeps them as long as the report has a batch of it.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/report/report_store.h"

namespace muster::controller {

// Between two looks; the first one comes as long after the beginning.
inline constexpr absl::Duration kForgetJobsEvery = absl::Minutes(10);

// Looks from a thread of its own, until it is destroyed.
class ForgottenJobs {
 public:
  // An error: it is not known whether there is the job. From any thread.
  using IsThere = std::function<absl::StatusOr<bool>(const std::string& job)>;

  // `report` and `clock` are not owned.
  ForgottenJobs(report::ReportStore* report, IsThere is_there, base::Clock* clock);
  ForgottenJobs(const ForgottenJobs&) = delete;
  ForgottenJobs& operator=(const ForgottenJobs&) = delete;

 private:
  void Run(const std::stop_token& stop);
  // One look at all jobs of the report that have no batch in it.
  absl::Status Sweep(const std::stop_token& stop);

  report::ReportStore* const report_;  // not owned
  const IsThere is_there_;
  base::Clock* const clock_;  // not owned
  std::jthread thread_;       // last: it uses the others
};

}  // namespace muster::controller
