// SPDX-License-Identifier: Apache-2.0

// The command line of muster-queue-gateway.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "services/host/host_options.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/auth/bearer.h"
#include "services/queue-gateway/throttle/request_throttle.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::queue_gateway {

struct Options {
  Options() { host.nats_url.clear(); }
  bool is_on_nats() const { return !host.nats_url.empty(); }

  std::string listen = "127.0.0.1:10001";
  std::string data_dir = ".muster-queues";  // without a NATS server
  std::string certificate;
  std::string key;
  std::vector<std::string> accounts;  // NAME:KEY or NAME:KEY:KEY2 each, or lists of them
  std::string account_file;
  std::string oauth;      // "": off; "basic"
  std::string jwks_file;  // "": the signatures of tokens are not checked
  // Of tokens; empty: those of BearerOptions, which are of every tenant.
  std::vector<std::string> issuers;
  throttle::RequestTargets targets;
  std::string health;  // HOST:PORT; empty: nowhere
  std::string admin;   // HOST:PORT of the gRPC service for operators; empty: nowhere
  // Of these the gateway uses the NATS server, the metrics, the name of the instance, and the
  // options that say which clients the service for operators lets in.
  host::HostOptions host{host::kQueueGateway};
  absl::Duration drain_grace = absl::Seconds(30);
  base::LogLevel log_level = base::kInfo;
  base::LogFormat log_format = base::LogFormat::kText;
};

// `options` outlives `app`.
void AddOptions(CLI::App* app, Options* options);

// The accounts that the options name. Without any, the development account, whose key everybody
// knows: only where no other machine can reach the gateway. InvalidArgument, without a key.
absl::StatusOr<std::unique_ptr<auth::AccountSource>> OpenAccounts(const Options& options,
                                                                  const base::Clock* clock);

// Null: OAuth is off. InvalidArgument: it needs HTTPS, and where other machines can reach the
// gateway, a key set and an issuer: without these, anyone can make a token, or has one of a tenant
// of their own.
absl::StatusOr<std::unique_ptr<auth::BearerVerifier>> OpenBearer(const Options& options,
                                                                 const base::Clock* clock);

}  // namespace muster::queue_gateway
