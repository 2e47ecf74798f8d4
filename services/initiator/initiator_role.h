// SPDX-License-Identifier: Apache-2.0

// InitiatorRole: the initiator as its host runs it: takes batches in, keeps their content and
// ledger in its data directory, and works on each batch until it is complete.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/client/scaling_client.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/remote/remote_report_client.h"
#include "muster/sync/unique_id_generator.h"
#include "services/host/host_options.h"
#include "services/host/membership.h"
#include "services/host/role.h"
#include "services/initiator/api/batch_service.h"
#include "services/initiator/api/job_service.h"
#include "services/initiator/api/ledger_service.h"
#include "services/initiator/api/partition_service.h"
#include "services/initiator/api/stream_service.h"
#include "services/initiator/batch/back_pressure.h"
#include "services/initiator/batch/opener.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/submit/admission.h"
#include "services/initiator/submit/request_claims.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/uploads.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::initiator {

struct RoleOptions {
  // HOST:PORT of the controller, when its heartbeats are not heard here.
  std::string controller;
  double trace_sample = batch::kDefaultTraceSample;  // as BatchOpener
  batch::BackPressureOptions back_pressure = {};
  retention::UploadLimits uploads = {};
};

class InitiatorRole final : public host::Role {
 public:
  // `clock` is not owned and outlives the role.
  InitiatorRole(const host::HostOptions& host, RoleOptions options, base::Clock* clock);
  ~InitiatorRole() override;

  absl::Status Open(const host::Stores& stores, const host::Fail& fail) override;
  std::vector<rpc::ServedService> services() override;
  bool shows_nats_streams() const override { return true; }
  void OnStoresBack() override;
  void Drain(absl::Duration grace) override;
  void Close() override;

  // What full queues held back since Open; all zero before.
  batch::BackPressureCounters back_pressure() const;

 private:
  // What lives from Open to Close, in the order of construction.
  struct Parts;

  // A ledger whose disk was full takes nothing more until it is opened again: the role fails. When
  // it is started again, it waits in Open until there is room.
  absl::Status OpenData(const host::Fail& fail, telemetry::Registry* metrics);
  // Uses only those members of `parts` that are made before the scheduler.
  batch::EngineDependencies Tools(const host::Stores& stores, Parts* parts) const;
  std::vector<std::string> Controllers() const;
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t batch) const;
  absl::StatusOr<uint64_t> FindRequest(const v1::FindRequestRequest& request) const;
  // The items that all initiators hold back from the job's queue with this first partition.
  int64_t HeldBackFrom(const queue::QueueId& queue) const;
  // The instance names of the live processors.
  std::vector<std::string> Processors() const;
  absl::StatusOr<std::optional<uint64_t>> FindRunningBatch(absl::string_view job) const;

  const host::HostOptions host_;
  const RoleOptions options_;
  base::Clock* const clock_;  // not owned

  std::string directory_id_;  // empty: this initiator is alone, and claims no request ids
  std::unique_ptr<ledger::BatchLedger> ledger_;
  std::unique_ptr<submit::Uploads> uploads_;
  std::unique_ptr<batch::BackPressure> back_pressure_;  // outlives the membership
  std::unique_ptr<host::Membership> membership_;
  std::unique_ptr<submit::JobThroughput> throughput_;
  std::unique_ptr<Parts> parts_;
};

// The initiator's own command line options, beside those of its host.

// Adds --trace-sample, which MUSTER_TRACE_SAMPLE sets too: the share, 0 to 1, of batches without a
// submitter's trace that are sampled; and the options of AddBackPressureOptions and
// AddUploadOptions. `options` outlives `app`.
void AddInitiatorOptions(CLI::App* app, RoleOptions* options);

}  // namespace muster::initiator
