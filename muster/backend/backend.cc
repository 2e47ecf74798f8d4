// Opens each backend by the scheme of its URL.

#include "muster/backend/backend.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/blob/jetstream/jetstream_blob_store.h"
#include "muster/bus/local/local_buses.h"
#include "muster/bus/nats/nats_buses.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/queue/jetstream/jetstream_queue_store.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "muster/sync/jetstream/jetstream_sync_store.h"
#include "muster/sync/rocksdb/rocksdb_sync_store.h"

namespace muster::backend {

// Whether `url` is of a NATS server: "nats://host:4222", or "tls://host:4222" for an encrypted
// connection; several servers of one cluster separated by commas.
inline bool IsNatsUrl(absl::string_view url) {
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
        absl::StrCat(seam, " '", url, "' needs a connection that lasts: open it by Backends"));
  }
  return absl::InvalidArgumentError(absl::StrCat("no ", seam, " backend for '", url, "'; it takes ",
                                                 scheme,
                                                 elsewhere == Elsewhere::kNats ? ", nats://" : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenQueueStore(absl::string_view url, Mode mode,
                                                                  Holders holders,
                                                                  base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("queue", url, kRocksDb, Elsewhere::kNats));
  queue::rocksdb::Options options;
  options.clock = clock;
  options.read_only = mode == Mode::kReadOnly;
  options.holders_in_process = holders == Holders::kInProcess;
  return queue::rocksdb::RocksDbQueueStore::Open(dir, options);
}

absl::StatusOr<std::unique_ptr<ledger::BatchLedger>> OpenBatchLedger(
    absl::string_view url, Mode mode, std::function<void(const absl::Status&)> on_failure) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("ledger", url, kRocksDb));
  ledger::rocksdb::Options options;
  options.read_only = mode == Mode::kReadOnly;
  options.on_failure = std::move(on_failure);
  return ledger::rocksdb::RocksDbBatchLedger::Open(dir, options);
}

absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> OpenSyncStore(absl::string_view url,
                                                                         Mode mode) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("sync", url, kRocksDb, Elsewhere::kNats));
  sync::rocksdb::Options options;
  options.read_only = mode == Mode::kReadOnly;
  return sync::rocksdb::RocksDbSyncStore::Open(dir, options);
}

absl::StatusOr<std::unique_ptr<blob::BlobStore>> OpenBlobStore(absl::string_view url) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("blob", url, kFile, Elsewhere::kNats));
  return blob::file::FileBlobStore::Open(dir);
}

absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenReportStore(absl::string_view url,
                                                                     Mode mode,
                                                                     base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(const std::string file, Rest("report", url, kSqlite));
  report::sqlite::SqliteOptions options;
  options.clock = clock;
  options.read_only = mode == Mode::kReadOnly;
  return report::sqlite::OpenSqliteReport(file, options);
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
      blobs(absl::StrCat(kFile, data_dir, "/blobs")),
      report(absl::StrCat(kSqlite, data_dir, "/report.db")),
      report_file(absl::StrCat(data_dir, "/report.db")),
      usage_file(absl::StrCat(data_dir, "/usage.jsonl")) {}

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
  options.holder = options_.holder;
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
