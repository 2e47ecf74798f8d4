// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/admin.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::queue_gateway {

absl::StatusOr<item::RefusedItems> ForeignBatches::Grant(uint64_t batch,
                                                         absl::Span<const uint64_t>) {
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", batch, " is one of a mesh, whose initiator redrives its items"));
}

Admin::Admin(const Options& options, queue::QueueStore* queues, sync::OptimisticSyncStore* sync,
             bus::TriggerBus* bus, base::Clock* clock)
    : service_(queues, &batches_, sync, bus, options.host.instance, clock) {}

absl::StatusOr<std::unique_ptr<Admin>> Admin::Start(const Options& options,
                                                    queue::QueueStore* queues,
                                                    sync::OptimisticSyncStore* sync,
                                                    bus::TriggerBus* bus, base::Clock* clock,
                                                    telemetry::Registry* metrics) {
  rpc::ServerOptions server = options.host.server();
  server.addresses = {options.admin};
  server.metrics = metrics;
  server.clock = clock;
  std::unique_ptr<Admin> admin(new Admin(options, queues, sync, bus, clock));
  MUSTER_ASSIGN_OR_RETURN(
      admin->server_,
      rpc::Server::Start(server, {{v1::QueueService::service_full_name(), &admin->service_}}));
  admin->server_->SetReady(true);
  return admin;
}

void Admin::Drain(absl::Duration grace) {
  service_.Drain();
  server_->Drain(grace);
}

}  // namespace muster::queue_gateway
