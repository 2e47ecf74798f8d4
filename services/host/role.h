// SPDX-License-Identifier: Apache-2.0

// Role: the interface of what a host runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"
#include "muster/queue/queue_store.h"
#include "muster/rpc/server.h"
#include "muster/stream/event_stream_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"
#include "muster/telemetry/span.h"

namespace muster::host {

// The stores, buses and metrics that a host opens for its role, and that all roles share. Not
// owned; valid from Role::Open to Role::Close.
struct Stores {
  queue::QueueStore* queues = nullptr;
  sync::OptimisticSyncStore* sync = nullptr;
  blob::BlobStore* blobs = nullptr;
  bus::TriggerBus* bus = nullptr;
  bus::HeartbeatBus* heartbeats = nullptr;
  std::string address;  // HOST:PORT by which others reach this instance
  // Null: nothing is measured. What records with it must be gone after Role::Close.
  telemetry::Registry* metrics = nullptr;
  // Null: batches are not traced. As metrics.
  telemetry::SpanSink* spans = nullptr;
  stream::EventStreamStore* streams = nullptr;
};

// Ends the host with an error: the role cannot go on. Thread-safe; the first call counts.
using Fail = std::function<void(const absl::Status&)>;

//   Open ─► services ─► … ─► Drain ─► Close
//
// The host calls these in this order, from one thread. It calls services() only after Open has
// succeeded; Drain and Close end all that Open has begun, also if Open failed.
class Role {
 public:
  virtual ~Role() = default;

  // Begins to work. After a transient error (base::IsTransient) the host calls it again, within the
  // time of rpc::RetryAfter if the error has one; any other error ends the host.
  virtual absl::Status Open(const Stores& stores, const Fail& fail) = 0;

  // Called once. The services live as long as the role, and take calls until Close.
  virtual std::vector<rpc::ServedService> services() = 0;

  // Whether the host shows what the NATS servers keep: it is the same for all roles of a mesh, and
  // one has it shown.
  virtual bool shows_nats_streams() const { return false; }

  // The stores were away and are back; a server may have lost what it held. Called between services
  // and Drain, on a thread of the connection, which waits for it: be quick, and call no store.
  virtual void OnStoresBack() {}

  // Begins no more work, and finishes the running work within `grace`.
  virtual void Drain(absl::Duration grace) = 0;

  // Releases the stores. No call runs any more.
  virtual void Close() = 0;
};

}  // namespace muster::host
