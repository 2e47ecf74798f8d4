// SPDX-License-Identifier: Apache-2.0

// Opens the backend of each seam from a URL. This is the only library that names backends: all
// other code gets a seam and never asks what is behind it.
//
//   seam     URL, on one machine     URL, on many
//   queue    rocksdb:DIR             nats://HOST:PORT
//   ledger   rocksdb:DIR
//   sync     rocksdb:DIR             nats://HOST:PORT
//   stream   rocksdb:DIR             nats://HOST:PORT
//   blobs    file:DIR                nats://HOST:PORT
//   report   sqlite:FILE
//   buses    local:                  nats://HOST:PORT      (triggers; heartbeats)
//
// A Backends object (below) opens backends on a NATS server, and owns the connection. It also
// accepts tls://HOST:PORT, and the servers of a cluster separated by commas.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/trigger_bus.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/nats/connection.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_store.h"
#include "muster/stream/event_stream_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"

namespace muster::backend {

// Whether `url` is of a NATS server: "nats://host:4222", or "tls://host:4222" for an encrypted
// connection; several servers of one cluster separated by commas.
bool IsNatsUrl(absl::string_view url);

enum class Mode {
  kReadWrite,  // makes what is missing; at most one process
  kReadOnly,   // changes nothing; beside a process that writes, or alone
};

// The processes in which the lease holders of a queue store live.
enum class Holders {
  kInProcess,  // in the process that opens it: a lease found at the open has a dead holder
  kElsewhere,  // behind a gateway, say: leases outlive the process of the store
};

// InvalidArgument: no backend of that seam has the scheme of this URL; the message lists the
// schemes there are. Also for the URL of a NATS server. Otherwise returns the errors of the
// backend. `clock` is not owned, nor is `metrics`, which measures the store; null: nothing does.
//
// `on_failure` is called once, from any thread, when the store takes nothing more until it is
// opened again, with the reason: its disk is full, or fails. It must not call the store.
absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenQueueStore(
    absl::string_view url, Mode mode, Holders holders, base::Clock* clock,
    telemetry::Registry* metrics = nullptr,
    std::function<void(const absl::Status&)> on_failure = nullptr);
absl::StatusOr<std::unique_ptr<ledger::BatchLedger>> OpenBatchLedger(
    absl::string_view url, Mode mode, std::function<void(const absl::Status&)> on_failure = nullptr,
    telemetry::Registry* metrics = nullptr);
absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> OpenSyncStore(
    absl::string_view url, Mode mode = Mode::kReadWrite, telemetry::Registry* metrics = nullptr,
    std::function<void(const absl::Status&)> on_failure = nullptr);
absl::StatusOr<std::unique_ptr<stream::EventStreamStore>> OpenEventStreamStore(
    absl::string_view url, Mode mode, base::Clock* clock, telemetry::Registry* metrics = nullptr,
    std::function<void(const absl::Status&)> on_failure = nullptr);
absl::StatusOr<std::unique_ptr<blob::BlobStore>> OpenBlobStore(absl::string_view url);
absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenReportStore(
    absl::string_view url, Mode mode, base::Clock* clock, telemetry::Registry* metrics = nullptr);
// To write as `owner`, until another process does so under a higher epoch.
absl::StatusOr<std::unique_ptr<report::ReportStore>> OpenOwnedReport(
    absl::string_view url, const report::ReportOwner& owner, base::Clock* clock,
    telemetry::Registry* metrics = nullptr);
// NotFound: there is no report yet, or it has no id.
absl::StatusOr<report::ReportIdentity> ReadReportIdentity(absl::string_view url);
absl::StatusOr<std::unique_ptr<bus::TriggerBus>> OpenTriggerBus(absl::string_view url);
absl::StatusOr<std::unique_ptr<bus::HeartbeatBus>> OpenHeartbeatBus(absl::string_view url);

// The URLs of the backends of one machine in a data directory.
struct DataDirUrls {
  explicit DataDirUrls(absl::string_view data_dir);

  std::string queue;
  std::string ledger;
  std::string sync;
  std::string stream;
  std::string blobs;
  std::string report;
  std::string report_file;  // the path in `report`
  std::string usage_file;   // what each run used, for bills
};

// Backends: opens backends as the functions above do, and also those on a NATS server.

struct NatsOptions {
  nats::ConnectionOptions connection = {};
  // Of the queues of the installation whose heartbeats and events the buses carry; empty: they
  // carry those of all.
  std::string account = "";
  std::string bucket = "muster";  // of records, of blobs, and of event streams
  int replicas = 1;               // of what is stored
  // The name of this process among those that hold messages (queue::jetstream::Options::holder).
  std::string holder = "";
  // How long a message is leased; with this engine the same for all messages.
  absl::Duration lease = absl::Seconds(30);
  // The durability of acknowledgements that the operator of the server states.
  queue::Survives ack_survives = queue::Survives::kProcess;
};

// What a connection has gone through since it was opened.
struct NatsActivity {
  bool is_prompt = false;  // the one beside the main one, for queues
  int64_t reconnects = 0;  // times that it was lost and came back
  int64_t errors = 0;
  int64_t in_flight = 0;  // requests that wait for an answer now
};

// What a NATS server keeps for muster.
struct NatsStream {
  std::string name;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  int64_t max_bytes = 0;     // 0: no bound
  absl::Duration first_age;  // of its first message; 0: it is empty
  int64_t consumers = 0;
};

struct NatsKept {
  std::vector<NatsStream> streams;
  bool has_storage = false;
  uint64_t storage_bytes = 0;     // of the account, on disk
  int64_t max_storage_bytes = 0;  // 0: it has no bound of its own
};

// One reading of the streams takes no longer, and looks at no more streams of the account.
inline constexpr absl::Duration kReadStreamsTime = absl::Seconds(2);
inline constexpr size_t kMaxReadStreams = 4000;

// Owns the objects that the backends of one process share: one connection per NATS URL and, for
// queues, a prompt one beside it, made when the first of them is opened. The backends that it
// opened must be destroyed before it.
//
// Thread-safe.
class Backends {
 public:
  // `metrics` measures the stores that this process owns; null: nothing does. Not owned.
  explicit Backends(NatsOptions options = NatsOptions(), telemetry::Registry* metrics = nullptr);
  ~Backends();
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;

  // As the functions above. Unavailable: no server answers at the URL; try again. A store on a
  // server has no modes: `mode`, `holders` and `on_failure` apply only to stores that a process
  // owns.
  absl::StatusOr<std::unique_ptr<queue::QueueStore>> OpenQueueStore(
      absl::string_view url, Mode mode, Holders holders, base::Clock* clock,
      std::function<void(const absl::Status&)> on_failure = nullptr) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<sync::OptimisticSyncStore>> OpenSyncStore(
      absl::string_view url, Mode mode = Mode::kReadWrite,
      std::function<void(const absl::Status&)> on_failure = nullptr) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<stream::EventStreamStore>> OpenEventStreamStore(
      absl::string_view url, Mode mode, base::Clock* clock,
      std::function<void(const absl::Status&)> on_failure = nullptr) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<blob::BlobStore>> OpenBlobStore(absl::string_view url)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<bus::TriggerBus>> OpenTriggerBus(absl::string_view url)
      ABSL_LOCKS_EXCLUDED(mu_);
  // "local:" or "nats://…".
  absl::StatusOr<std::unique_ptr<bus::HeartbeatBus>> OpenHeartbeatBus(absl::string_view url)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Of all open connections to NATS servers. Never waits for a server.
  std::vector<NatsActivity> Activity() ABSL_LOCKS_EXCLUDED(open_mu_);

  // nats::Connection::LimitPatience of all of them.
  void LimitPatience(absl::Duration patience) ABSL_LOCKS_EXCLUDED(open_mu_);

  // Fills `kept` with what these servers keep under the names that the stores of this object give,
  // and the queues of all accounts. Asks the servers; waits for none that is not connected. After
  // an error `kept` has what is known: Unavailable: a server did not answer in time;
  // ResourceExhausted: its account has more than kMaxReadStreams.
  absl::Status ReadStreams(NatsKept* kept) ABSL_LOCKS_EXCLUDED(open_mu_);

 private:
  absl::StatusOr<nats::Connection*> Connect(absl::string_view url) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<nats::Connection*> ConnectPrompt(absl::string_view url) ABSL_LOCKS_EXCLUDED(mu_);

  void NoteOpen(nats::Connection* connection) ABSL_LOCKS_EXCLUDED(open_mu_);
  bool IsOurs(absl::string_view stream) const;
  std::string Installation() const;

  const NatsOptions options_;
  telemetry::Registry* const metrics_;  // not owned
  // Held while connecting: another caller with the same URL needs that connection, too.
  base::Mutex mu_;
  std::map<std::string, std::unique_ptr<nats::Connection>> connections_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::unique_ptr<nats::Connection>> prompt_ ABSL_GUARDED_BY(mu_);
  base::Mutex open_mu_;
  std::vector<nats::Connection*> open_ ABSL_GUARDED_BY(open_mu_);  // of both maps; not owned
};

}  // namespace muster::backend
