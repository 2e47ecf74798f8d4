#include "muster/backend/backends.h"

#include <utility>

#include "muster/backend/nats_url.h"
#include "muster/base/status_macros.h"
#include "muster/blob/jetstream/jetstream_blob_store.h"
#include "muster/bus/nats/nats_heartbeat_bus.h"
#include "muster/bus/nats/nats_trigger_bus.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"

namespace muster::backend {

Backends::Backends(NatsOptions options) : options_(std::move(options)) {}
Backends::~Backends() = default;

absl::StatusOr<nats::Connection*> Backends::Connect(absl::string_view url) {
  base::MutexLock lock(&mu_);
  std::unique_ptr<nats::Connection>& connection = connections_[std::string(url)];
  if (connection == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(connection,
                            nats::Connection::Open(std::string(url), options_.connection));
  }
  return connection.get();
}

// Whether the server is there, the other connection tells.
absl::StatusOr<nats::Connection*> Backends::ConnectPrompt(absl::string_view url) {
  base::MutexLock lock(&mu_);
  std::unique_ptr<nats::Connection>& connection = prompt_[std::string(url)];
  if (connection == nullptr) {
    nats::ConnectionOptions options = options_.connection;
    options.name += " (prompt)";
    options.prompt = true;
    options.on_change = nullptr;
    MUSTER_ASSIGN_OR_RETURN(connection, nats::Connection::Open(std::string(url), options));
  }
  return connection.get();
}

absl::StatusOr<std::unique_ptr<queue::QueueStore>> Backends::OpenQueueStore(absl::string_view url,
                                                                            Mode mode,
                                                                            Holders holders,
                                                                            base::Clock* clock) {
  if (!IsNatsUrl(url)) return backend::OpenQueueStore(url, mode, holders, clock);
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  queue::jetstream::Options options;
  options.settings.replicas = options_.replicas;
  options.settings.lease = options_.lease;
  options.ack_survives = options_.ack_survives;
  options.clock = clock;
  MUSTER_ASSIGN_OR_RETURN(options.prompt, ConnectPrompt(url));
  return queue::jetstream::OpenJetStreamQueues(connection, options);
}

absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> Backends::OpenSyncStore(
    absl::string_view url, Mode mode) {
  if (!IsNatsUrl(url)) return backend::OpenSyncStore(url, mode);
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  sync::jetstream::Options options;
  options.bucket = options_.bucket;
  options.replicas = options_.replicas;
  options.read_only = mode == Mode::kReadOnly;
  return sync::jetstream::JetStreamSyncStore::Open(connection, options);
}

absl::StatusOr<std::unique_ptr<blob::BlobStore>> Backends::OpenBlobStore(absl::string_view url) {
  if (!IsNatsUrl(url)) return backend::OpenBlobStore(url);
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  blob::jetstream::Options options;
  options.bucket = options_.bucket;
  options.replicas = options_.replicas;
  return blob::jetstream::JetStreamBlobStore::Open(connection, options);
}

absl::StatusOr<std::unique_ptr<bus::TriggerBus>> Backends::OpenTriggerBus(absl::string_view url) {
  if (!IsNatsUrl(url)) return backend::OpenTriggerBus(url);
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  return std::make_unique<bus::nats::NatsTriggerBus>(connection);
}

absl::StatusOr<std::unique_ptr<bus::HeartbeatBus>> Backends::OpenHeartbeatBus(
    absl::string_view url) {
  if (!IsNatsUrl(url)) return backend::OpenHeartbeatBus(url);
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  return std::make_unique<bus::nats::NatsHeartbeatBus>(connection);
}

}  // namespace muster::backend
