// SPDX-License-Identifier: Apache-2.0

// GatewayStores: the queues and the records that a gateway serves, in its data directory or on a
// NATS server.
#pragma once

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/bus/trigger_bus.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/operations/completing_store.h"
#include "services/queue-gateway/options.h"
#include "services/queue-gateway/serving_state.h"

namespace muster::queue_gateway {

// Thread-safe once it is open.
class GatewayStores {
 public:
  // Opens all, and tries again for as long as the NATS server does not answer, or has streams
  // otherwise than they must be. Cancelled: `stop` was requested. Tells `state` of the connection,
  // and of a disk that takes nothing more, from then on. No pointer is owned; all outlive the
  // stores; `metrics` may be null.
  static absl::StatusOr<std::unique_ptr<GatewayStores>> Open(const Options& options,
                                                             base::Clock* clock,
                                                             telemetry::Registry* metrics,
                                                             ServingState* state,
                                                             const std::stop_token& stop);

  operations::Stores stores() const;
  // Of the NATS server; null: no other process can read the queues.
  bus::TriggerBus* bus() { return bus_.get(); }
  backend::Backends* backends() { return &backends_; }

 private:
  GatewayStores(const Options& options, base::Clock* clock, telemetry::Registry* metrics,
                ServingState* state);
  absl::Status OpenOnce(const Options& options);

  ServingState* const state_;  // not owned
  base::Clock* const clock_;   // not owned
  backend::Backends backends_;
  std::unique_ptr<queue::QueueStore> queues_;
  // In front of an engine that lacks something; null: the engine has all.
  std::unique_ptr<operations::CompletingStore> completed_;
  std::unique_ptr<sync::OptimisticSyncStore> records_;
  std::unique_ptr<bus::TriggerBus> bus_;
};

}  // namespace muster::queue_gateway
