// SPDX-License-Identifier: Apache-2.0

// `muster-queue-gateway`: Azure Queue Storage's REST API over one of muster's queue
// engines.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/os/process_limits.h"
#include "muster/os/process_start.h"
#include "muster/os/stop_signals.h"
#include "muster/rpc/certificate_watch.h"
#include "muster/telemetry/catalogue.h"
#include "muster/telemetry/registry.h"
#include "services/host/build_info.h"
#include "services/host/host.h"
#include "services/host/host_options.h"
#include "services/host/host_telemetry.h"
#include "services/host/parse_error.h"
#include "services/host/unknown_variables.h"
#include "services/queue-gateway/admin.h"
#include "services/queue-gateway/gateway.h"
#include "services/queue-gateway/gateway_stores.h"
#include "services/queue-gateway/health.h"
#include "services/queue-gateway/http/server.h"
#include "services/queue-gateway/operations/long_polls.h"
#include "services/queue-gateway/operations/waking_store.h"
#include "services/queue-gateway/options.h"
#include "services/queue-gateway/put_announcer.h"
#include "services/queue-gateway/queue_depths.h"
#include "services/queue-gateway/serving_state.h"

namespace muster::queue_gateway {
namespace {

constexpr char kName[] = "muster-queue-gateway";
// Each connection has one, and the engine keeps some hundred files open.
constexpr int kDescriptors = http::kMaxConnections + 1000;

// A store that is opened again writes out what its log holds.
constexpr uintmax_t kRoomBytes = uintmax_t{256} << 20;
constexpr absl::Duration kRoomInterval = absl::Seconds(2);

bool HasRoom(const std::string& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  return !error && space.available >= kRoomBytes;
}

// Waits for `stop`. A gateway whose disk is full goes on reading until there is room, and then asks
// to be started again, as only a store that is opened anew takes writes.
void AwaitEnd(const Options& options, ServingState* state, const std::stop_token& stop) {
  std::stop_source woken;
  const auto wake = [&woken] { woken.request_stop(); };
  const std::stop_callback at_stop(stop, wake);
  const std::stop_callback at_disk(state->only_reads(), wake);
  base::SleepUnlessStopped(base::RealClock(), absl::InfiniteDuration(), woken.get_token());
  while (base::SleepUnlessStopped(base::RealClock(), kRoomInterval, stop)) {
    if (!HasRoom(options.data_dir)) continue;
    state->Fail(
        absl::UnavailableError(absl::StrCat("a write failed, and the disk of ", options.data_dir,
                                            " has room: start again; the log says what failed")));
  }
}

// What an API is served with. Nothing is owned.
struct Served {
  Gateway* gateway;
  Admin* admin;  // null: operators have no listener
  telemetry::Registry* metrics;
  ServingState* state;
  operations::LongPolls* polls;
};

// Tells that the gateway drains, and returns when it has.
void Drain(const Options& options, const Served& served, http::Server* server) {
  base::Clock* const clock = base::RealClock();
  const absl::Duration end = clock->Monotonic() + options.drain_grace;
  served.state->Drain();
  base::Log(base::kInfo, "draining");
  // First: the answers of those that wait tell their clients to come back elsewhere.
  server->BeginDrain();
  served.polls->Drain();
  if (served.admin != nullptr) served.admin->Drain(options.drain_grace);
  server->Drain(std::max(absl::ZeroDuration(), end - clock->Monotonic()));
  served.gateway->Drain();
  base::Log(base::kInfo, "drained");
}

// Answers requests until `stop`, then drains.
absl::Status ServeApi(const Options& options, const Served& served, const std::stop_token& stop) {
  http::ServerOptions server_options;
  server_options.address = options.listen;
  server_options.certificate = options.certificate;
  server_options.key = options.key;
  MUSTER_ASSIGN_OR_RETURN(
      const auto server,
      http::Server::Start(
          server_options,
          [gateway = served.gateway](const http::Request& request,
                                     const std::shared_ptr<http::Exchange>& exchange) {
            gateway->Handle(request, exchange);
          },
          [gateway = served.gateway](int status, const http::Request& head) {
            return gateway->Refuse(status, head);
          }));
  const auto connections = telemetry::ReadAtScrape(
      served.metrics, "server", {telemetry::kGatewayConnections.entry()},
      [&server = *server](telemetry::Samples* samples) {
        samples->Set(telemetry::kGatewayConnections, {}, server.connections());
        return absl::OkStatus();
      });
  served.state->Open();
  base::Log(base::kInfo, "ready",
            {{"address", absl::StrCat(options.certificate.empty() ? "http://" : "https://",
                                      server->address())},
             {"queues", options.is_on_nats() ? nats::WithoutSecrets(options.host.nats_url)
                                             : options.data_dir}});
  AwaitEnd(options, served.state, stop);
  Drain(options, served, server.get());
  return served.state->failure().value_or(absl::OkStatus());
}

absl::Status Serve(const Options& options, const std::stop_token& signals) {
  base::Clock* const clock = base::RealClock();
  MUSTER_ASSIGN_OR_RETURN(const auto accounts, OpenAccounts(options, clock));
  MUSTER_ASSIGN_OR_RETURN(const auto bearer, OpenBearer(options, clock));
  std::stop_source end;
  const std::stop_callback chain(signals, [&end] { end.request_stop(); });
  ServingState state([&end] { end.request_stop(); });
  std::unique_ptr<http::Server> health;
  if (!options.health.empty()) {
    MUSTER_ASSIGN_OR_RETURN(health, ServeHealth(options.health, &state));
    base::Log(base::kInfo, "health", {{"at", health->address()}});
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<host::HostTelemetry> telemetry,
                          host::HostTelemetry::Start(options.host, clock));
  if (telemetry != nullptr) {
    telemetry->TellReadiness([&state] {
      return state.is_ready() ? absl::OkStatus() : absl::UnavailableError(state.InWords());
    });
  }
  telemetry::Registry* const metrics = telemetry == nullptr ? nullptr : telemetry->registry();
  const rpc::CertificateWatch certificates(
      {options.certificate, options.host.nats.connection.certificate_file}, metrics, clock,
      rpc::CertificateWatch::EndedAlready::kTell);
  const rpc::CertificateWatch of_admin({options.host.tls.certificate}, metrics, clock);

  absl::StatusOr<std::unique_ptr<GatewayStores>> stores =
      GatewayStores::Open(options, clock, metrics, &state, end.get_token());
  if (absl::IsCancelled(stores.status())) return state.failure().value_or(absl::OkStatus());
  MUSTER_RETURN_IF_ERROR(stores.status());
  if (telemetry != nullptr) {
    telemetry->Watch((*stores)->backends());
    telemetry->ShowNatsStreams((*stores)->backends());
  }
  const auth::Authenticator authenticator(accounts.get(), bearer.get(), clock);
  throttle::RequestThrottle throttle(options.targets, clock);
  operations::Stores all = (*stores)->stores();
  operations::LongPolls polls(all.queues, clock);
  operations::WakingStore waking(all.queues, &polls);
  all.queues = &waking;
  std::optional<PutAnnouncer> announcer;
  std::optional<AnnouncingStore> announcing;
  if (bus::TriggerBus* const bus = (*stores)->bus(); bus != nullptr) {
    announcer.emplace(bus, options.host.instance, clock);
    all.queues = &announcing.emplace(&waking, &*announcer);
  }
  Gateway gateway(&authenticator, &throttle, all, metrics, &polls);
  const QueueDepths depths(accounts.get(), (*stores)->stores().queues, &state, clock, metrics);
  std::unique_ptr<Admin> admin;
  if (!options.admin.empty()) {
    MUSTER_ASSIGN_OR_RETURN(
        admin, Admin::Start(options, &waking, all.records, (*stores)->bus(), clock, metrics));
    base::Log(base::kInfo, "admin", {{"at", admin->address()}});
  }
  const absl::Status served =
      ServeApi(options, {&gateway, admin.get(), metrics, &state, &polls}, end.get_token());
  if (telemetry != nullptr) telemetry->Close();
  return served;
}

absl::Status Run(const Options& options) {
  base::SetLogFormat(options.log_format);
  base::SetMinLogLevel(options.log_level);
  host::WarnOfUnknownVariables();
  os::RaiseDescriptorLimit(kDescriptors);
  const os::StopSignals signals(
      {.grace = options.drain_grace + host::kExitSlack,
       .exit_code = host::kHurried,
       .when_late = absl::StrCat(kName, ": a request does not end; leaving it behind"),
       .when_hurried = absl::StrCat(kName, ": stopped at once"),
       .on_user_signal = [level = options.log_level] { host::SwitchLogLevel(level); }});
  return Serve(options, signals.token());
}

int Main(int argc, char** argv) {
  os::PrepareProcess();
  os::ExitWhenExhausted(kName, host::kExhausted);
  Options options;
  CLI::App app(
      absl::StrCat(kName, ": Azure Queue Storage's REST API over durable queues of muster."),
      kName);
  app.footer(
      "Each option is also an environment variable: MUSTER_ and its name in capitals; accounts "
      "are\n"
      "MUSTER_ACCOUNTS, separated by semicolons.\n"
      "Exit codes: 0 ended by SIGTERM or SIGINT, 1 error, 2 usage, 5 no thread or memory left,\n"
      "130 ended at once");
  app.set_version_flag("--version", host::BuildInWords());
  AddOptions(&app, &options);
  try {
    app.parse(argc, argv);
    host::TakeRefusedVariables(&app);
    host::TakeDefaultMetrics(&app, options.listen, &options.host);
  } catch (const CLI::ParseError& error) {
    const bool is_answer =
        host::AnswerParseError(app, error, {argv, static_cast<size_t>(argc)}) == 0;
    return is_answer ? host::kDone : host::kMisused;
  }
  const absl::Status served = Run(options);
  if (served.ok()) return host::kDone;
  std::cerr << kName << ": " << served.message() << std::endl;
  return absl::IsInvalidArgument(served) ? host::kMisused : host::kFailed;
}

}  // namespace
}  // namespace muster::queue_gateway

int main(int argc, char** argv) { return muster::queue_gateway::Main(argc, argv); }
