// SPDX-License-Identifier: Apache-2.0

// HostOptions: the options that all services share. The bounds of a host come first, with their
// reasons.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/log.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"

namespace muster::host {

// The longest wait between two tries to open a store that does not answer: short enough for a user
// who has just started the NATS server, long enough not to overload it when many hosts wait.
inline constexpr absl::Duration kMaxOpenWait = absl::Seconds(10);
// A service that waits for them could not become ready with fewer threads besides those it has: its
// connections and subscriptions alone start more.
inline constexpr int kThreadsToBeReady = 16;

// From the end of the grace to the forced end of the process: the time in which the cut-off work
// must stop. A last call to a NATS server that does not answer takes 5 seconds.
inline constexpr absl::Duration kExitSlack = absl::Seconds(8);

inline constexpr absl::Duration kMaxDrainGrace = absl::Hours(24);
inline constexpr absl::Duration kMinLease = absl::Seconds(1);
inline constexpr absl::Duration kMaxLease = absl::Hours(12);
inline constexpr int kMaxReplicas = 5;  // as JetStream's

// From the port of a service to that of its metrics, unless --metrics says otherwise: 7790 for the
// initiator at 7700.
inline constexpr int kMetricsPortOffset = 90;

// An instance's name is part of subjects and log lines.
inline constexpr size_t kMaxInstanceBytes = 128;

// The options that every service has on its command line and in the environment.

struct RoleInfo {
  absl::string_view name;
  int port;  // where it listens by default
};

inline constexpr RoleInfo kInitiator{"initiator", 7700};
inline constexpr RoleInfo kProcessor{"processor", 7701};
inline constexpr RoleInfo kController{"controller", 7702};
inline constexpr RoleInfo kScalingAgent{"scaling-agent", 7703};
// The port of Azure's own emulator, which clients with UseDevelopmentStorage=true call.
inline constexpr RoleInfo kQueueGateway{"queue-gateway", 10001};

// The URLs of the stores and buses that all roles share.
struct StoreUrls {
  std::string queues;
  std::string records;
  std::string blobs;
  std::string buses;
  std::string streams;
};

struct HostOptions {
  // The defaults of `role`: its address, and an instance name that no other process has or had.
  explicit HostOptions(const RoleInfo& role);

  std::string service;              // "muster-processor": of what it sends to a collector
  std::vector<std::string> listen;  // HOST:PORT each
  std::string advertise;            // HOST:PORT by which others reach it; empty: the first of these
  // Empty: the shared stores are in the data directory, and all roles run in this process.
  std::string nats_url = "nats://127.0.0.1:4222";
  std::string data_dir = ".muster";
  std::string account;
  std::string instance;
  rpc::TlsFiles tls;  // no certificate: plaintext
  std::string policy_file;
  bool allow_plaintext = false;
  bool allow_any_client = false;
  std::string health;   // HOST:PORT where health is answered without TLS; empty: nowhere
  std::string metrics;  // HOST:PORT where Prometheus reads them; empty: nowhere
  // `metrics` is what TakeDefaultMetrics has chosen: if it cannot listen there, the service goes on
  // without.
  bool metrics_are_default = false;
  bool allow_plaintext_metrics = false;
  std::string notify_socket;  // as NOTIFY_SOCKET of sd_notify(3); empty: nothing waits
  backend::NatsOptions nats;
  absl::Duration drain_grace = absl::Seconds(30);
  base::LogLevel log_level = base::kInfo;
  base::LogFormat log_format = base::LogFormat::kText;

  // Whether only this machine can reach it.
  bool is_on_loopback() const;
  bool is_embedded() const { return nats_url.empty(); }
  StoreUrls stores() const;
  // After OK the data directory survives a power cut, so that what is stored in it can.
  // InvalidArgument: it cannot be created.
  absl::Status CreateDataDir() const;
  // The server's options, without its services.
  rpc::ServerOptions server() const;
  // How this instance calls others of its mesh: it authenticates with its server's certificate.
  rpc::ChannelOptions channel() const;
};

// Adds the options, with the values in `options` as defaults. Each is also an environment variable:
// --tls-cert is MUSTER_TLS_CERT, --listen is MUSTER_LISTEN with commas between. `options` outlives
// `app`.
void AddHostOptions(CLI::App* app, HostOptions* options);

// Adds those of them that say whom the server lets in: TLS, the policy, and what is allowed
// without.
void AddServerSecurity(CLI::App* app, HostOptions* options);

// Adds those of them that name the NATS server and what is stored there, but for --lease.
void AddNatsOptions(CLI::App* app, HostOptions* options);

// Adds --metrics and --allow-plaintext-metrics. TakeDefaultMetrics belongs to it.
void AddMetricsOptions(CLI::App* app, HostOptions* options);

// Adds those that name the secrets of a connection to the NATS server. `connection`
// outlives `app`.
void AddNatsSecrets(CLI::App* app, nats::ConnectionOptions* connection);

// Adds --log-level and --log-format, with the values as defaults.
void AddLogOptions(CLI::App* app, base::LogLevel* level, base::LogFormat* format);

// The environment variables, with values, that make another role on this host a member of the same
// mesh, and log as this one: the stores, the account of the queues, and the TLS files. Omits what
// belongs to one instance alone: its name, data directory and policy; its addresses are empty.
std::vector<std::pair<std::string, std::string>> EnvironmentOf(const HostOptions& options);

// The environment variable of a role's option: "--threads" → MUSTER_THREADS.
std::string EnvironmentName(absl::string_view option);
// Call this after `app` has parsed. Where neither --metrics nor MUSTER_METRICS, which may be empty,
// says where metrics are, they are on loopback, kMetricsPortOffset above the port of `listen`;
// nowhere, if the system picks that port, or the sum is no port.
void TakeDefaultMetrics(CLI::App* app, const std::string& listen, HostOptions* options);
// Adds an option such as `--lease 30s`, with values from `low` to `high`.
args::Option AddDuration(CLI::App* app, const std::string& name, absl::Duration* value,
                         absl::Duration low, absl::Duration high, const std::string& help);

}  // namespace muster::host
