// SPDX-License-Identifier: Apache-2.0

// Opens each backend by the scheme of its URL.

#include "muster/backend/backend.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/blob/jetstream/jetstream_blob_store.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/nats/nats_buses.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/nats/connection.h"
#include "muster/nats/jetstream.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "muster/stream/jetstream/jetstream_event_stream_store.h"
#include "muster/stream/rocksdb/rocksdb_event_stream_store.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"
#include "muster/sync/rocksdb/rocksdb_sync_store.h"

namespace muster::backend {

bool IsNatsUrl(absl::string_view url) {
  return absl::StartsWith(url, "nats://") || absl::StartsWith(url, "tls://");
}

namespace {

constexpr absl::string_view kRocksDb = "rocksdb:";
constexpr absl::string_view kFile = "file:";
constexpr absl::string_view kSqlite = "sqlite:";
constexpr absl::string_view kLocal = "local:";

// Where else a seam may have backends.
enum class Elsewhere { kNowhere, kNats };

// Returns the part of `url` after `scheme`.
absl::StatusOr<std::string> Rest(absl::string_view seam, absl::string_view url,
                                 absl::string_view scheme,
                                 Elsewhere elsewhere = Elsewhere::kNowhere) {
  if (absl::StartsWith(url, scheme)) return std::string(url.substr(scheme.size()));
  if (elsewhere == Elsewhere::kNats && IsNatsUrl(url)) {
    return absl::InvalidArgumentError(
        absl::StrCat(seam, " '", nats::WithoutSecrets(url),
                     "' needs a connection that lasts: open it by Backends"));
  }
  // It may be meant for a NATS server, with a password.
  return absl::InvalidArgumentError(absl::StrCat("no ", seam, " backend for '",
                                                 nats::WithoutSecrets(url), "'; it takes ", scheme,
                                                 elsewhere == Elsewhere::kNats ? ", nats://" : ""));
}

}  // namespace

// How often expired messages are deleted of queues that lie idle; a look at a queue without any
// takes a microsecond.
constexpr absl::Duration kCollectInterval = absl::Minutes(1);

absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenQueueStore(
    absl::string_view url, Mode mode, Holders holders, base::Clock* clock,
    telemetry::Registry* metrics, std::function<void(const absl::Status&)> on_failure) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("queue", url, kRocksDb, Elsewhere::kNats));
  queue::rocksdb::Options options;
  options.clock = clock;
  options.read_only = mode == Mode::kReadOnly;
  options.holders_in_process = holders == Holders::kInProcess;
  // Queues of a gateway may lie idle with all that expires in them.
  if (holders == Holders::kElsewhere) options.collect_interval = kCollectInterval;
  options.on_failure = std::move(on_failure);
  options.metrics = metrics;
  return queue::rocksdb::RocksDbQueueStore::Open(dir, options);
}

absl::StatusOr<std::unique_ptr<ledger::BatchLedger>> OpenBatchLedger(
    absl::string_view url, Mode mode, std::function<void(const absl::Status&)> on_failure,
    telemetry::Registry* metrics) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("ledger", url, kRocksDb));
  ledger::rocksdb::Options options;
  options.read_only = mode == Mode::kReadOnly;
  options.on_failure = std::move(on_failure);
  options.metrics = metrics;
  return ledger::rocksdb::RocksDbBatchLedger::Open(dir, options);
}

absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> OpenSyncStore(
    absl::string_view url, Mode mode, telemetry::Registry* metrics,
    std::function<void(const absl::Status&)> on_failure) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("sync", url, kRocksDb, Elsewhere::kNats));
  sync::rocksdb::Options options;
  options.read_only = mode == Mode::kReadOnly;
  options.on_failure = std::move(on_failure);
  options.metrics = metrics;
  return sync::rocksdb::RocksDbSyncStore::Open(dir, options);
}

absl::StatusOr<std::unique_ptr<stream::EventStreamStore>> OpenEventStreamStore(
    absl::string_view url, Mode mode, base::Clock* clock, telemetry::Registry* metrics,
    std::function<void(const absl::Status&)> on_failure) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir,
                          Rest("event stream", url, kRocksDb, Elsewhere::kNats));
  stream::rocksdb::Options options;
  options.clock = clock;
  options.read_only = mode == Mode::kReadOnly;
  options.on_failure = std::move(on_failure);
  options.metrics = metrics;
  return stream::rocksdb::RocksDbEventStreamStore::Open(dir, options);
}

absl::StatusOr<std::unique_ptr<blob::BlobStore>> OpenBlobStore(absl::string_view url) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("blob", url, kFile, Elsewhere::kNats));
  return blob::file::FileBlobStore::Open(dir);
}

absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenReportStore(absl::string_view url,
                                                                     Mode mode, base::Clock* clock,
                                                                     telemetry::Registry* metrics) {
  MUSTER_ASSIGN_OR_RETURN(const std::string file, Rest("report", url, kSqlite));
  report::sqlite::SqliteOptions options;
  options.clock = clock;
  options.metrics = metrics;
  options.read_only = mode == Mode::kReadOnly;
  return report::sqlite::OpenSqliteReport(file, options);
}

absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenOwnedReport(
    absl::string_view url, const report::ReportOwner& owner, base::Clock* clock,
    telemetry::Registry* metrics) {
  MUSTER_ASSIGN_OR_RETURN(const std::string file, Rest("report", url, kSqlite));
  report::sqlite::SqliteOptions options;
  options.clock = clock;
  options.metrics = metrics;
  options.owner = owner;
  return report::sqlite::OpenSqliteReport(file, options);
}

absl::StatusOr<report::ReportIdentity> ReadReportIdentity(absl::string_view url) {
  MUSTER_ASSIGN_OR_RETURN(const std::string file, Rest("report", url, kSqlite));
  return report::sqlite::ReadIdentity(file);
}

absl::StatusOr<std::unique_ptr<bus::TriggerBus>> OpenTriggerBus(absl::string_view url) {
  MUSTER_RETURN_IF_ERROR(Rest("trigger bus", url, kLocal, Elsewhere::kNats).status());
  return std::make_unique<bus::local::LocalTriggerBus>();
}

absl::StatusOr<std::unique_ptr<bus::HeartbeatBus>> OpenHeartbeatBus(absl::string_view url) {
  MUSTER_RETURN_IF_ERROR(Rest("heartbeat bus", url, kLocal, Elsewhere::kNats).status());
  return std::make_unique<bus::local::LocalHeartbeatBus>();
}

DataDirUrls::DataDirUrls(absl::string_view data_dir)
    : queue(absl::StrCat(kRocksDb, data_dir, "/queue")),
      ledger(absl::StrCat(kRocksDb, data_dir, "/ledger")),
      sync(absl::StrCat(kRocksDb, data_dir, "/sync")),
      stream(absl::StrCat(kRocksDb, data_dir, "/stream")),
      blobs(absl::StrCat(kFile, data_dir, "/blobs")),
      report(absl::StrCat(kSqlite, data_dir, "/report.db")),
      report_file(absl::StrCat(data_dir, "/report.db")),
      usage_file(absl::StrCat(data_dir, "/usage.jsonl")) {}

Backends::Backends(NatsOptions options, telemetry::Registry* metrics)
    : options_(std::move(options)), metrics_(metrics) {}
Backends::~Backends() = default;

absl::StatusOr<nats::Connection*> Backends::Connect(absl::string_view url) {
  base::MutexLock lock(&mu_);
  std::unique_ptr<nats::Connection>& connection = connections_[std::string(url)];
  if (connection == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(connection,
                            nats::Connection::Open(std::string(url), options_.connection));
    NoteOpen(connection.get());
  }
  return connection.get();
}

// Without on_change: the main connection already reports whether the server is there.
absl::StatusOr<nats::Connection*> Backends::ConnectPrompt(absl::string_view url) {
  base::MutexLock lock(&mu_);
  std::unique_ptr<nats::Connection>& connection = prompt_[std::string(url)];
  if (connection == nullptr) {
    nats::ConnectionOptions options = options_.connection;
    options.name += " (prompt)";
    options.prompt = true;
    options.on_change = nullptr;
    MUSTER_ASSIGN_OR_RETURN(connection, nats::Connection::Open(std::string(url), options));
    NoteOpen(connection.get());
  }
  return connection.get();
}

void Backends::NoteOpen(nats::Connection* connection) {
  base::MutexLock lock(&open_mu_);
  open_.push_back(connection);
}

std::vector<NatsActivity> Backends::Activity() {
  base::MutexLock lock(&open_mu_);
  std::vector<NatsActivity> activity;
  for (const nats::Connection* const connection : open_) {
    activity.push_back({connection->prompt(), connection->times_back(), connection->errors(),
                        connection->requests_in_flight()});
  }
  return activity;
}

void Backends::LimitPatience(absl::Duration patience) {
  base::MutexLock lock(&open_mu_);
  for (nats::Connection* const connection : open_) connection->LimitPatience(patience);
}

namespace {

NatsStream StreamOf(const nats::ListedStream& listed, absl::Time now) {
  NatsStream stream;
  stream.name = listed.name;
  stream.messages = listed.state.messages;
  stream.bytes = listed.state.bytes;
  stream.max_bytes = listed.max_bytes;
  stream.consumers = listed.consumers;
  // Two clocks are at work: the server's and this one.
  if (stream.messages > 0) {
    stream.first_age = std::max(absl::ZeroDuration(), now - listed.state.first_time);
  }
  return stream;
}

// Reads one server's account; waits no longer than until `end`.
absl::Status ReadAccount(nats::Connection* connection, absl::Duration end,
                         absl::FunctionRef<void(const nats::ListedStream&)> take, NatsKept* kept) {
  if (!connection->connected()) return absl::UnavailableError("there is no connection");
  const auto api = [connection, end] {
    const absl::Duration left = end - base::RealClock()->Monotonic();
    return nats::JetStream(connection, std::max(left, absl::Milliseconds(1)));
  };
  MUSTER_ASSIGN_OR_RETURN(const nats::StorageUse use, api().GetStorageUse());
  kept->has_storage = true;
  kept->storage_bytes += use.bytes;
  kept->max_storage_bytes += use.max_bytes;
  for (size_t offset = 0; offset < kMaxReadStreams;) {
    MUSTER_ASSIGN_OR_RETURN(const nats::StreamPage page, api().ListStreams(offset));
    for (const nats::ListedStream& stream : page.streams) take(stream);
    offset += page.streams.size();
    if (page.streams.empty() || offset >= page.total) return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the NATS account has more than ", kMaxReadStreams, " streams"));
}

}  // namespace

// As the engines name them.
bool Backends::IsOurs(absl::string_view stream) const {
  const std::string& bucket = options_.bucket;
  return absl::StartsWith(stream, "MUSTER_") || absl::StartsWith(stream, "MUSTER-") ||
         stream == absl::StrCat("KV_", bucket) || stream == absl::StrCat("OBJ_", bucket) ||
         absl::StartsWith(stream, absl::StrCat("EVENTS_", bucket, "_"));
}

absl::Status Backends::ReadStreams(NatsKept* kept) {
  std::vector<nats::Connection*> connections;
  {
    base::MutexLock lock(&open_mu_);
    for (nats::Connection* const connection : open_) {
      if (!connection->prompt()) connections.push_back(connection);
    }
  }
  const absl::Duration end = base::RealClock()->Monotonic() + kReadStreamsTime;
  const absl::Time now = base::RealClock()->Now();
  absl::Status read;
  for (nats::Connection* const connection : connections) {
    read.Update(ReadAccount(
        connection, end,
        [&](const nats::ListedStream& stream) {
          if (IsOurs(stream.name)) kept->streams.push_back(StreamOf(stream, now));
        },
        kept));
  }
  return read;
}

absl::StatusOr<std::unique_ptr<queue::QueueStore>> Backends::OpenQueueStore(
    absl::string_view url, Mode mode, Holders holders, base::Clock* clock,
    std::function<void(const absl::Status&)> on_failure) {
  if (!IsNatsUrl(url)) {
    return backend::OpenQueueStore(url, mode, holders, clock, metrics_, std::move(on_failure));
  }
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  queue::jetstream::Options options;
  options.settings.replicas = options_.replicas;
  options.settings.lease = options_.lease;
  options.ack_survives = options_.ack_survives;
  options.holder = options_.holder;
  options.clock = clock;
  MUSTER_ASSIGN_OR_RETURN(options.prompt, ConnectPrompt(url));
  return queue::jetstream::OpenJetStreamQueues(connection, options);
}

absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> Backends::OpenSyncStore(
    absl::string_view url, Mode mode, std::function<void(const absl::Status&)> on_failure) {
  if (!IsNatsUrl(url)) return backend::OpenSyncStore(url, mode, metrics_, std::move(on_failure));
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  sync::jetstream::Options options;
  options.bucket = options_.bucket;
  options.replicas = options_.replicas;
  options.read_only = mode == Mode::kReadOnly;
  return sync::jetstream::JetStreamSyncStore::Open(connection, options);
}

absl::StatusOr<std::unique_ptr<stream::EventStreamStore>> Backends::OpenEventStreamStore(
    absl::string_view url, Mode mode, base::Clock* clock,
    std::function<void(const absl::Status&)> on_failure) {
  if (!IsNatsUrl(url)) {
    return backend::OpenEventStreamStore(url, mode, clock, metrics_, std::move(on_failure));
  }
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  stream::jetstream::Options options;
  options.bucket = options_.bucket;
  options.replicas = options_.replicas;
  options.atomic_appends = options_.ack_survives == queue::Survives::kPower;
  return stream::jetstream::JetStreamEventStreamStore::Open(connection, options);
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
  return std::make_unique<bus::nats::NatsTriggerBus>(connection, Installation());
}

absl::StatusOr<std::unique_ptr<bus::HeartbeatBus>> Backends::OpenHeartbeatBus(
    absl::string_view url) {
  if (!IsNatsUrl(url)) return backend::OpenHeartbeatBus(url);
  MUSTER_ASSIGN_OR_RETURN(nats::Connection* const connection, Connect(url));
  return std::make_unique<bus::nats::NatsHeartbeatBus>(connection, Installation());
}

std::string Backends::Installation() const {
  return options_.account.empty() ? "" : absl::StrCat(options_.account, "/", options_.bucket);
}

}  // namespace muster::backend
