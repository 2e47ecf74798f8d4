// SPDX-License-Identifier: Apache-2.0

// ControllerRole: the controller as its host runs it. It counts the results of every job that has
// registered batches, into one report. Of several controllers, one counts (report_ownership.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/remote/remote_batch_records.h"
#include "muster/report/report_store.h"
#include "services/controller/controller.h"
#include "services/controller/controller_seat.h"
#include "services/controller/controller_supervisor.h"
#include "services/controller/forgotten_jobs.h"
#include "services/controller/report_ownership.h"
#include "services/controller/report_service.h"
#include "services/controller/switched_report.h"
#include "services/host/host_options.h"
#include "services/host/membership.h"
#include "services/host/role.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::controller {

struct RoleOptions {
  std::string report_url;  // empty: in the data directory
  // HOST:PORT of initiators, in addition to those that send heartbeats.
  std::vector<std::string> initiators;
  // As OwnershipOptions; not used where the shared stores are in the data directory, which no
  // second controller can open.
  absl::Duration ownership_lease = kOwnershipLease;
  std::string replaced_report;
  absl::Duration unknown_batch_grace = Options().unknown_batch_grace;
};

// Adds --report, --ownership-lease, --replace-report and --unknown-batch-grace; each is also an
// environment variable.
// `options` outlives `app`.
void AddControllerOptions(CLI::App* app, RoleOptions* options);

class ControllerRole final : public host::Role {
 public:
  // `clock` is not owned and outlives the role.
  ControllerRole(const host::HostOptions& host, RoleOptions options, base::Clock* clock)
      : host_(host), options_(std::move(options)), clock_(clock) {}

  // Unavailable while another controller counts.
  absl::Status Open(const host::Stores& stores, const host::Fail& fail) override;
  std::vector<rpc::ServedService> services() override;
  void Drain(absl::Duration grace) override;
  void Close() override;

 private:
  std::string ReportUrl() const;
  absl::Status JoinMesh(const host::Stores& stores);
  // Adds the jobs whose results are not counted, and why.
  void TellTroubles(v1::Heartbeat* heartbeat) const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CreateOwnership(const host::Stores& stores);
  void MakeRecords();
  std::shared_ptr<ControllerSupervisor> MakeCounting(const host::Stores& stores);
  // Opens the report, for the only writer if there is no `owner`, and counts.
  absl::Status BeginCounting(const host::Stores& stores,
                             const std::optional<report::ReportOwner>& owner)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndCounting() ABSL_LOCKS_EXCLUDED(mu_);
  // Begins to count for the jobs of the batches that are in the report already.
  absl::Status BeginKnownJobs(ControllerSupervisor* counting);
  // Whether the job is there, or a batch of it waits for results.
  bool IsNeeded(const std::string& job);
  absl::StatusOr<bool> HasOpenBatch(const std::string& job);
  // Unavailable: this controller does not count now.
  absl::StatusOr<std::shared_ptr<ControllerSupervisor>> Counting() const ABSL_LOCKS_EXCLUDED(mu_);

  const host::HostOptions host_;
  const RoleOptions options_;
  base::Clock* const clock_;  // not owned

  SwitchedReport report_;
  std::unique_ptr<ControllerSeat> seat_;
  std::unique_ptr<ReportOwnership> ownership_;  // null: this is the only controller
  std::unique_ptr<host::Membership> membership_;
  std::unique_ptr<ledger::remote::RemoteBatchRecords> records_;
  std::unique_ptr<job::JobRegistry> jobs_;
  mutable base::Mutex mu_;
  // Shared with the calls that are under way.
  std::shared_ptr<ControllerSupervisor> counting_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ForgottenJobs> forgotten_jobs_ ABSL_GUARDED_BY(mu_);  // while it counts
  std::unique_ptr<ReportService> report_service_;
};

}  // namespace muster::controller
