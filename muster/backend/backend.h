// Opens each seam's backend from a URL. The only library that names backends: everything else gets
// a seam and never asks what is behind it.
//
//   seam     URL, on one machine     URL, on many
//   queue    rocksdb:DIR             nats://HOST:PORT
//   ledger   rocksdb:DIR
//   sync     rocksdb:DIR             nats://HOST:PORT
//   blobs    file:DIR                nats://HOST:PORT
//   report   sqlite:FILE
//   buses    local:                  nats://HOST:PORT      (triggers; heartbeats)
//
// What is on a NATS server is opened by a Backends object (backends.h), which owns the connection.
// Also tls://HOST:PORT, and the servers of a cluster with commas between.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_store.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::backend {

enum class Mode {
  kReadWrite,  // makes what is missing; at most one process
  kReadOnly,   // changes nothing; beside a process that writes, or alone
};

// Where those live who hold leases of a queue store.
enum class Holders {
  kInProcess,  // in the process that opens it: leases found at the open are a dead process's
  kElsewhere,  // behind a gateway, say: leases outlive the store's process
};

// InvalidArgument: no backend of that seam has this URL's scheme; the message lists those that do.
// Also for a NATS server's.
// Otherwise the backend's own errors. `clock` is not owned.
absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenQueueStore(absl::string_view url, Mode mode,
                                                                  Holders holders,
                                                                  base::Clock* clock);
absl::StatusOr<std::unique_ptr<ledger::BatchLedger>> OpenBatchLedger(absl::string_view url,
                                                                     Mode mode);
absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> OpenSyncStore(
    absl::string_view url, Mode mode = Mode::kReadWrite);
absl::StatusOr<std::unique_ptr<blob::BlobStore>> OpenBlobStore(absl::string_view url);
absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenReportStore(absl::string_view url,
                                                                     Mode mode, base::Clock* clock);
absl::StatusOr<std::unique_ptr<bus::TriggerBus>> OpenTriggerBus(absl::string_view url);
absl::StatusOr<std::unique_ptr<bus::HeartbeatBus>> OpenHeartbeatBus(absl::string_view url);

// Where the backends of one machine lie in a data directory.
struct DataDirUrls {
  explicit DataDirUrls(absl::string_view data_dir);

  std::string queue;
  std::string ledger;
  std::string sync;
  std::string blobs;
  std::string report;
  std::string report_file;  // the path in `report`
  std::string usage_file;   // what each run used, for bills
};

}  // namespace muster::backend
