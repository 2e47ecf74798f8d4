// SPDX-License-Identifier: Apache-2.0

// ProcessorRole: the processor as its host runs it.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/content/remote/remote_content.h"
#include "muster/handler/handler.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/remote/remote_batch_records.h"
#include "services/host/host_options.h"
#include "services/host/membership.h"
#include "services/host/role.h"
#include "services/processor/job_listeners.h"
#include "services/processor/processor_service.h"
#include "services/processor/standby.h"
#include "services/processor/worker_service.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::processor {

class ProcessorRole final : public host::Role {
 public:
  // `handlers` and `clock` are not owned and outlive the role. Options that name no programs allow
  // those of UsualPrograms.
  ProcessorRole(const handler::HandlerRegistry* handlers, const host::HostOptions& host,
                const ServiceOptions& options, base::Clock* clock);

  std::vector<rpc::ServedService> services() override;
  absl::Status Open(const host::Stores& stores, const host::Fail& fail) override;
  void Drain(absl::Duration grace) override;
  void Close() override;

 private:
  absl::StatusOr<bool> IsOver(uint64_t batch);
  absl::Status StartService(const host::Stores& stores);

  const host::HostOptions host_;
  const bool content_from_initiator_;
  base::Clock* const clock_;                                     // not owned
  std::unique_ptr<job::JobRegistry> jobs_;                       // from Open to Close
  std::unique_ptr<item::CancelledBatches> cancelled_;            // likewise
  std::unique_ptr<item::SuspendedBatches> suspended_;            // likewise
  std::unique_ptr<ledger::remote::RemoteBatchRecords> ledgers_;  // likewise
  std::unique_ptr<content::remote::RemoteContent> content_;      // likewise; uses ledgers_
  ProcessorService service_;
  bool works_ = false;  // from Open to Close: service_ is started
  WorkerService workers_;
  LoadReport load_;
  std::unique_ptr<Standby> standby_;  // null: the role works at once; outlives the membership
  std::unique_ptr<host::Membership> membership_;  // from Open to Close; uses load_
};

// The processor's own command line options, beside those of its host.

// Adds --handler-programs, the bounds of what they run as (--handler-env, --handler-memory,
// --handler-file-size, --handler-processes), --handler-tls-roots, --handler-tls-cert and
// --handler-tls-key, which the environment sets too: MUSTER_HANDLER_TLS_ROOTS. `access` outlives
// `app`.
void AddHandlerOptions(CLI::App* app, HandlerAccess* access);

// Adds the options of AddHandlerOptions, --job NAME[=THREADS], --threads, --standby NAME and
// --content-from-initiator, which the environment sets too: MUSTER_JOB with commas between. Each
// job has its own workers, so that a flood of items of one job leaves the workers of other jobs
// free. Without --threads each job has as many workers as the machine has cores. `options` outlives
// `app`.
void AddProcessorOptions(CLI::App* app, ServiceOptions* options);

}  // namespace muster::processor
