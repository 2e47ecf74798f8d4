// SPDX-License-Identifier: Apache-2.0

// Admin: the gRPC listener of a gateway, by which `muster queue` looks into its queues and mends
// them.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/bus/trigger_bus.h"
#include "muster/item/redrive.h"
#include "muster/queue/queue_store.h"
#include "muster/rpc/server.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"
#include "services/queue-admin/queue_service.h"
#include "services/queue-gateway/options.h"

namespace muster::queue_gateway {

// Work items of a mesh that uses the same queues: a gateway has no batches to open again, so they
// stay poison.
class ForeignBatches final : public item::BatchReopener {
 public:
  // FailedPrecondition, saying where to redrive them.
  absl::StatusOr<item::RefusedItems> Grant(uint64_t batch,
                                           absl::Span<const uint64_t> items) override;
};

// Thread-safe.
class Admin {
 public:
  // Listens at `options.admin`, which is not empty, and is ready. `bus` hears of what is redriven.
  // `bus` and `metrics` may be null. No pointer is owned; all outlive this. Statuses: those of
  // rpc::Server.
  static absl::StatusOr<std::unique_ptr<Admin>> Start(const Options& options,
                                                      queue::QueueStore* queues,
                                                      sync::OptimisticSyncStore* sync,
                                                      bus::TriggerBus* bus, base::Clock* clock,
                                                      telemetry::Registry* metrics);

  const std::string& address() const { return server_->addresses().front(); }

  // Ends redrives that have a rate, and lets other calls finish within `grace`.
  void Drain(absl::Duration grace);

 private:
  Admin(const Options& options, queue::QueueStore* queues, sync::OptimisticSyncStore* sync,
        bus::TriggerBus* bus, base::Clock* clock);

  ForeignBatches batches_;
  queue_admin::QueueService service_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace muster::queue_gateway
