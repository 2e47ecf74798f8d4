// SPDX-License-Identifier: Apache-2.0

// Host: runs one role as a service: it listens, opens the role's stores, answers health checks, and
// drains the role when it stops.
//
//   Start ─► listening, not ready ─► Serve: open, trying again ─► ready ─► stop ─► drained
//                                                                 │  ▲
//                                           NATS connection lost  ▼  │ back
//                                                               not ready
//
// The health service answers from the beginning: an instance that waits for its NATS server is
// alive and not ready. Until the role is open, every other call answers Unavailable and names what
// the host waits for; if a stream is configured differently than it must be, the reason is
// STREAM_INCOMPATIBLE. When all is open, a server with the role's services replaces the first one
// on the same addresses: clients must connect anew.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/os/notify_socket.h"
#include "muster/rpc/certificate_watch.h"
#include "muster/rpc/server.h"
#include "services/host/host_options.h"
#include "services/host/host_telemetry.h"
#include "services/host/role.h"

namespace muster::host {

// Thread-safe.
class Host {
 public:
  // Listens. `role` and `clock` are not owned and outlive the host. Errors are those of
  // rpc::Server::Start and HostTelemetry::Start.
  static absl::StatusOr<std::unique_ptr<Host>> Start(const HostOptions& options, Role* role,
                                                     base::Clock* clock);
  // Cuts off running calls.
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // As of rpc::Server.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Where health is answered without TLS, which options.health has asked for.
  const std::string& health_address() const { return health_->addresses().front(); }

  // Opens the stores and the role, retrying for as long as it takes, serves until `stop`, and
  // drains. Call it once. An error: the host cannot open a store and waiting does not help, or the
  // role has failed.
  absl::Status Serve(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Host(HostOptions options, Role* role, base::Clock* clock,
       std::unique_ptr<HostTelemetry> telemetry);

  absl::Status Open(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ListenForHealth();
  // OK, or in a few words why this instance is not ready.
  absl::Status Readiness() ABSL_LOCKS_EXCLUDED(mu_);
  // The error that calls answer before the role is open.
  absl::Status NotOpenYet() ABSL_LOCKS_EXCLUDED(mu_);
  rpc::ServerOptions ServerOptions() const;
  telemetry::Registry* registry() const;
  // Replaces the server with one that serves the role.
  absl::Status ServeRole() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status OpenStores(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `open` until it succeeds or fails for good. A store that is configured differently than
  // it must be (base::Mismatch) is retried like a store that does not answer. Cancelled: `stop` was
  // requested. Each new error is one log line, which names `where`.
  absl::Status OpenPatiently(absl::string_view what, absl::string_view where,
                             const std::function<absl::Status()>& open, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Tells callers and the log what the host waits for.
  void TellWaiting(absl::string_view what, absl::string_view where, const absl::Status& why,
                   absl::Duration again_in) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AwaitEnd(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

  void OnConnection(bool connected) ABSL_LOCKS_EXCLUDED(mu_);
  void OnFail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<absl::Status> Failure() ABSL_LOCKS_EXCLUDED(mu_);
  // Tells health, the log, and the one that started this process.
  void TellReadyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const HostOptions options_;
  const os::Notifier starter_{options_.notify_socket};
  Role* const role_;          // not owned
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  base::CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool connected_ ABSL_GUARDED_BY(mu_) = true;  // the first connection is part of opening
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool told_ready_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> failed_ ABSL_GUARDED_BY(mu_);
  std::string waiting_for_ ABSL_GUARDED_BY(mu_) = "its stores";  // and why, if that is known
  // Why it waits, if not for an answer.
  std::optional<base::Mismatch> mismatch_ ABSL_GUARDED_BY(mu_);

  const std::unique_ptr<HostTelemetry>
      telemetry_;            // null: nothing is measured; outlives what follows
  bool role_begun_ = false;  // Role::Open was called
  std::vector<std::string> addresses_;
  const rpc::CertificateWatch certificates_{{options_.tls.certificate}, registry(), clock_};
  const rpc::CertificateWatch nats_certificate_{{options_.nats.connection.certificate_file},
                                                registry(),
                                                clock_,
                                                rpc::CertificateWatch::EndedAlready::kTell};
  // The current server. Once Start is over, only the thread that serves changes it, under mu_.
  std::unique_ptr<rpc::Server> server_;
  // Answers only health, as server_ does; null: it is not wanted.
  std::unique_ptr<rpc::Server> health_;
  std::unique_ptr<backend::Backends> backends_;
  std::unique_ptr<queue::QueueStore> queues_;
  std::unique_ptr<sync::OptimisticSyncStore> sync_;
  std::unique_ptr<stream::EventStreamStore> streams_;
  std::unique_ptr<blob::BlobStore> blobs_;
  std::unique_ptr<bus::TriggerBus> bus_;
  std::unique_ptr<bus::HeartbeatBus> heartbeats_;
};

// Changes the log level from `level`, which the operator has set, to debug, or back; says so while
// debug is in force. What a service does at SIGUSR1.
void SwitchLogLevel(base::LogLevel level);

// RunService: the main function of every service.

// The exit codes of the services, with the same values as those of the `muster` command. A drain
// after SIGTERM or SIGINT is a success.
enum ServiceExit : int {
  kDone = 0,
  kFailed = 1,
  kMisused = 2,    // the command line or the environment is wrong
  kExhausted = 5,  // the system gives it no more threads or memory
  kHurried = 130,  // a second signal, or the role did not stop within the grace
};

// `clock` outlives the role.
using MakeRole = std::function<absl::StatusOr<std::unique_ptr<Role>>(const HostOptions& options,
                                                                     base::Clock* clock)>;

// Runs a role, as `program`, until SIGTERM or SIGINT, and drains it. A second signal, or a role
// that does not stop within the grace, ends the process with kHurried. Takes NOTIFY_SOCKET out of
// the environment. Call it before any other thread starts.
absl::Status RunRole(const std::string& program, HostOptions options, const MakeRole& make_role);

struct ServiceProgram {
  RoleInfo role;
  std::string about;  // for --help
  // Adds the role's own options; may be empty.
  std::function<void(CLI::App*)> add_options = nullptr;
  MakeRole make_role = nullptr;  // called after the options are read
};

// Runs "muster-ROLE" until SIGTERM or SIGINT, and answers its exit code. Call it from main, before
// any other thread starts.
int RunService(int argc, char** argv, const ServiceProgram& program);

}  // namespace muster::host
