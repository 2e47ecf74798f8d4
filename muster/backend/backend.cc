#include "muster/backend/backend.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/backend/nats_url.h"
#include "muster/base/status_macros.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/bus/local/local_heartbeat_bus.h"
#include "muster/bus/local/local_trigger_bus.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "muster/sync/rocksdb/rocks_sync_store.h"

namespace muster::backend {
namespace {

constexpr absl::string_view kRocksDb = "rocksdb:";
constexpr absl::string_view kFile = "file:";
constexpr absl::string_view kSqlite = "sqlite:";
constexpr absl::string_view kLocal = "local:";

// What else a seam may be on.
enum class Elsewhere { kNowhere, kNats };

// What follows `scheme` in `url`.
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

absl::StatusOr<std::unique_ptr<ledger::BatchLedger>> OpenBatchLedger(absl::string_view url,
                                                                     Mode mode) {
  MUSTER_ASSIGN_OR_RETURN(const std::string dir, Rest("ledger", url, kRocksDb));
  ledger::rocksdb::Options options;
  options.read_only = mode == Mode::kReadOnly;
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

}  // namespace muster::backend
