// Backends: opens backends as the functions of backend.h do, and also those on a NATS server.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"
#include "muster/nats/connection.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::backend {

struct NatsOptions {
  nats::ConnectionOptions connection = {};
  std::string bucket = "muster";  // of records, and of blobs
  int replicas = 1;               // of what is stored
  // How long a message is leased: with this engine the same for all.
  absl::Duration lease = absl::Seconds(30);
  // What the server's operator says of its acknowledgements.
  queue::Survives ack_survives = queue::Survives::kProcess;
};

// Owns what the backends of one process share: one connection for each NATS URL and, for queues, a
// prompt one beside it, made when the first of them is opened. What it opened must be gone before
// it.
//
// Thread-safe.
class Backends {
 public:
  explicit Backends(NatsOptions options = NatsOptions());
  ~Backends();
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;

  // As the functions in backend.h. Unavailable: nobody answers at the URL; try again. A queue store
  // on a server has no modes: `mode` and `holders` are for those that a process owns.
  absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenQueueStore(absl::string_view url,
                                                                    Mode mode, Holders holders,
                                                                    base::Clock* clock);
  absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> OpenSyncStore(
      absl::string_view url, Mode mode = Mode::kReadWrite);
  absl::StatusOr<std::unique_ptr<blob::BlobStore>> OpenBlobStore(absl::string_view url);
  absl::StatusOr<std::unique_ptr<bus::TriggerBus>> OpenTriggerBus(absl::string_view url);
  // "local:" or "nats://…".
  absl::StatusOr<std::unique_ptr<bus::HeartbeatBus>> OpenHeartbeatBus(absl::string_view url);

 private:
  absl::StatusOr<nats::Connection*> Connect(absl::string_view url);
  absl::StatusOr<nats::Connection*> ConnectPrompt(absl::string_view url);

  const NatsOptions options_;
  // Held while connecting: whoever asks for the same URL meanwhile needs that connection, too.
  base::Mutex mu_;
  std::map<std::string, std::unique_ptr<nats::Connection>> connections_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::unique_ptr<nats::Connection>> prompt_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::backend
