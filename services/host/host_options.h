// The bounds of a host, with their reasons.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/backend/backend.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace muster::host {

// Between two tries to open a store that does not answer, at the most: soon enough for people who
// have just started the server, seldom enough for a herd.
inline constexpr absl::Duration kMaxOpenWait = absl::Seconds(10);

// What lies between the end of the grace and the end of the process: what stops then is told to
// stop, and has to do so.
inline constexpr absl::Duration kExitSlack = absl::Seconds(5);

inline constexpr absl::Duration kMaxDrainGrace = absl::Hours(24);
inline constexpr absl::Duration kMinLease = absl::Seconds(1);
inline constexpr absl::Duration kMaxLease = absl::Hours(12);
inline constexpr int kMaxReplicas = 5;  // as JetStream's

// An instance's name is part of subjects and log lines.
inline constexpr size_t kMaxInstanceBytes = 128;

// What every service can be told on its command line, or by the environment.

struct RoleInfo {
  absl::string_view name;
  int port;  // where it listens unless it is told otherwise
};

inline constexpr RoleInfo kInitiator{"initiator", 7700};
inline constexpr RoleInfo kProcessor{"processor", 7701};
inline constexpr RoleInfo kController{"controller", 7702};
inline constexpr RoleInfo kScalingAgent{"scaling-agent", 7703};

// Where those stores and buses are that all roles share.
struct StoreUrls {
  std::string queues;
  std::string records;
  std::string blobs;
  std::string buses;
};

struct HostOptions {
  // Those of `role`: where it listens, and an instance name that no other process has or had.
  explicit HostOptions(const RoleInfo& role);

  std::vector<std::string> listen;  // HOST:PORT each
  std::string advertise;            // HOST:PORT by which others reach it; empty: the first of these
  // Empty: what roles share is in the data directory, and they are all in this process.
  std::string nats_url = "nats://127.0.0.1:4222";
  std::string data_dir = ".muster";
  std::string account;
  std::string instance;
  rpc::TlsFiles tls;  // no certificate: plaintext
  std::string policy_file;
  bool allow_plaintext = false;
  backend::NatsOptions nats;
  absl::Duration drain_grace = absl::Seconds(30);

  bool is_embedded() const { return nats_url.empty(); }
  StoreUrls stores() const;
  // Without its services.
  rpc::ServerOptions server() const;
  // How this instance calls others of its mesh: they know it by its server's certificate.
  rpc::ChannelOptions channel() const;
};

// Adds the options, with what is in `options` as their defaults. Each is also an environment
// variable: --tls-cert is MUSTER_TLS_CERT, --listen is MUSTER_LISTEN with commas between. `options`
// outlives `app`.
void AddHostOptions(CLI::App* app, HostOptions* options);

// What makes another role on this host one of the same mesh, as variables with their values: how it
// reaches the stores, whose queues these are, and how it shows who it is. What belongs to one
// instance alone is not among them: its addresses, name, data directory and policy.
std::vector<std::pair<std::string, std::string>> EnvironmentOf(const HostOptions& options);

// For the options of a role. "--threads" → MUSTER_THREADS.
std::string EnvironmentName(absl::string_view option);
// To be called when `app` has parsed. From 2.4 on, CLI11 passes by a variable whose whole text
// fails a check, though it may be a list, and what is wrong with it is never said. Throws
// CLI::ParseError.
void TakeRefusedVariables(CLI::App* app);
// An option such as `--lease 30s`, from `low` to `high`.
CLI::Option* AddDuration(CLI::App* app, const std::string& name, absl::Duration* value,
                         absl::Duration low, absl::Duration high, const std::string& help);

}  // namespace muster::host
