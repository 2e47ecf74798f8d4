// ControllerRole: the controller as its host runs it. It counts the results of every job that has
// registered batches, into one report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/ledger/remote/remote_batch_records.h"
#include "muster/report/report_store.h"
#include "services/controller/controller_supervisor.h"
#include "services/controller/report_service.h"
#include "services/host/host_options.h"
#include "services/host/membership.h"
#include "services/host/role.h"

namespace muster::controller {

struct RoleOptions {
  std::string report_url;  // empty: in the data directory
  // HOST:PORT of initiators, in addition to those that send heartbeats.
  std::vector<std::string> initiators;
};

class ControllerRole final : public host::Role {
 public:
  // `clock` is not owned and outlives the role.
  ControllerRole(const host::HostOptions& host, RoleOptions options, base::Clock* clock)
      : host_(host), options_(std::move(options)), clock_(clock) {}

  absl::Status Open(const host::Stores& stores, const host::Fail& fail) override;
  std::vector<rpc::ServedService> services() override;
  void Drain(absl::Duration grace) override;
  void Close() override;

 private:
  absl::Status OpenReport();
  void MakeRecords();
  void MakeCounting(const host::Stores& stores);
  // Begins to count for the jobs of the batches that are in the report already.
  absl::Status BeginKnownJobs();

  const host::HostOptions host_;
  const RoleOptions options_;
  base::Clock* const clock_;  // not owned

  std::unique_ptr<report::ReportStore> report_;
  std::unique_ptr<host::Membership> membership_;
  std::unique_ptr<ledger::remote::RemoteBatchRecords> records_;
  std::unique_ptr<ControllerSupervisor> counting_;
  std::unique_ptr<ReportService> report_service_;
};

}  // namespace muster::controller
