// SPDX-License-Identifier: Apache-2.0
#include "services/host/host.h"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/quantity.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/os/process_limits.h"
#include "muster/os/process_start.h"
#include "muster/os/stop_signals.h"
#include "muster/rpc/limits.h"
#include "muster/rpc/status.h"
#include "services/host/build_info.h"
#include "services/host/measured_queues.h"
#include "services/host/numbers.h"
#include "services/host/parse_error.h"
#include "services/host/unknown_variables.h"

namespace muster::host {

namespace {

// Moves the opened object into `place`.
template <typename T>
absl::Status Into(std::unique_ptr<T>* place, absl::StatusOr<std::unique_ptr<T>> opened) {
  MUSTER_ASSIGN_OR_RETURN(*place, std::move(opened));
  return absl::OkStatus();
}

}  // namespace

Host::Host(HostOptions options, Role* role, base::Clock* clock,
           std::unique_ptr<HostTelemetry> telemetry)
    : options_(std::move(options)), role_(role), clock_(clock), telemetry_(std::move(telemetry)) {
  backend::NatsOptions nats = options_.nats;
  nats.connection.name = options_.instance;
  nats.holder = options_.instance;
  nats.account = options_.account;
  nats.connection.on_change = [this](bool connected) { OnConnection(connected); };
  nats.connection.on_refused = [this](const absl::Status& why) { OnFail(why); };
  backends_ = std::make_unique<backend::Backends>(std::move(nats), registry());
  if (telemetry_ == nullptr) return;
  telemetry_->Watch(backends_.get());
  if (role_->shows_nats_streams()) telemetry_->ShowNatsStreams(backends_.get());
  telemetry_->TellReadiness([this] { return Readiness(); });
}

telemetry::Registry* Host::registry() const {
  return telemetry_ == nullptr ? nullptr : telemetry_->registry();
}

rpc::ServerOptions Host::ServerOptions() const {
  rpc::ServerOptions server = options_.server();
  server.metrics = registry();
  return server;
}

absl::StatusOr<std::unique_ptr<Host>> Host::Start(const HostOptions& options, Role* role,
                                                  base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<HostTelemetry> telemetry,
                          HostTelemetry::Start(options, clock));
  std::unique_ptr<Host> host(new Host(options, role, clock, std::move(telemetry)));
  rpc::ServerOptions server = host->ServerOptions();
  server.otherwise = [host = host.get()] { return host->NotOpenYet(); };
  MUSTER_ASSIGN_OR_RETURN(host->server_, rpc::Server::Start(server, {}));
  host->addresses_ = host->server_->addresses();
  if (!options.health.empty()) MUSTER_RETURN_IF_ERROR(host->ListenForHealth());
  base::Log(base::kInfo, "listening",
            {{"instance", options.instance}, {"at", absl::StrJoin(host->addresses(), ",")}});
  return host;
}

// Health says nothing that a stranger may not know, so it needs no TLS on any address.
absl::Status Host::ListenForHealth() {
  rpc::ServerOptions health;
  health.addresses = {options_.health};
  health.allow_plaintext = true;
  health.clock = clock_;
  MUSTER_ASSIGN_OR_RETURN(health_, rpc::Server::Start(health, {}));
  return absl::OkStatus();
}

absl::Status Host::Readiness() {
  base::MutexLock lock(&mu_);
  if (draining_) return absl::UnavailableError("it drains");
  if (!open_) {
    return absl::UnavailableError(absl::StrCat("it is starting, and waits for ", waiting_for_));
  }
  if (!connected_) {
    return absl::UnavailableError(
        "it has lost its connection to the NATS server, and connects anew");
  }
  return absl::OkStatus();
}

absl::Status Host::NotOpenYet() {
  base::MutexLock lock(&mu_);
  const absl::Status status = absl::UnavailableError(
      absl::StrCat(options_.instance, " is starting, and waits for ", waiting_for_));
  return mismatch_.has_value() ? base::WithMismatch(status, *mismatch_) : status;
}

// Destroys the stores before the server, because the connection's thread reports changes to the
// server; stops calls before that, because they use the stores.
Host::~Host() {
  if (telemetry_ != nullptr) telemetry_->Close();
  if (server_ != nullptr) server_->Drain(absl::ZeroDuration());
  heartbeats_.reset();
  bus_.reset();
  blobs_.reset();
  streams_.reset();
  sync_.reset();
  queues_.reset();
  backends_.reset();
}

absl::Status Host::Serve(const std::stop_token& stop) {
  MUSTER_CHECK(!role_begun_, options_.instance, " serves its role twice");
  absl::Status served = Open(stop);
  if (served.ok()) {
    served = AwaitEnd(stop);
    Drain();
  } else if (role_begun_) {
    role_->Drain(absl::ZeroDuration());
    role_->Close();
  }
  return absl::IsCancelled(served) && stop.stop_requested() ? absl::OkStatus() : served;
}

absl::Status Host::Open(const std::stop_token& stop) {
  MUSTER_RETURN_IF_ERROR(OpenStores(stop));
  const std::string& address = options_.advertise.empty() ? addresses_.front() : options_.advertise;
  const Stores stores{queues_.get(),     sync_.get(),
                      blobs_.get(),      bus_.get(),
                      heartbeats_.get(), address,
                      registry(),        telemetry_ == nullptr ? nullptr : telemetry_->spans(),
                      streams_.get()};
  const Fail fail = [this](const absl::Status& status) { OnFail(status); };
  MUSTER_RETURN_IF_ERROR(OpenPatiently(
      "what the role needs", options_.stores().queues,
      [&] {
        role_begun_ = true;
        return role_->Open(stores, fail);
      },
      stop));
  return ServeRole();
}

absl::Status Host::ServeRole() {
  // Between the servers, the address is still this instance's: of a port that the system picked,
  // another program could take it.
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      rpc::Server::Start(ServerOptions(), role_->services(), server_->HandOver());
  MUSTER_RETURN_IF_ERROR(server.status());
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(role_begun_ && !open_, options_.instance, ": role begun ", role_begun_, ", open ",
               open_);
  server_ = *std::move(server);
  open_ = true;
  TellReadyLocked();
  return absl::OkStatus();
}

absl::Status Host::OpenStores(const std::stop_token& stop) {
  const StoreUrls urls = options_.stores();
  // Such a store stays so until it is opened again, and the role would try for ever.
  const Fail fail = [this](const absl::Status& why) { OnFail(why); };
  if (options_.is_embedded()) MUSTER_RETURN_IF_ERROR(options_.CreateDataDir());
  MUSTER_RETURN_IF_ERROR(OpenPatiently(
      "the queues", urls.queues,
      [&] {
        const auto holders =
            options_.is_embedded() ? backend::Holders::kInProcess : backend::Holders::kElsewhere;
        return Into(&queues_, backends_->OpenQueueStore(urls.queues, backend::Mode::kReadWrite,
                                                        holders, clock_, fail));
      },
      stop));
  if (telemetry_ != nullptr) {
    queues_ = std::make_unique<MeasuredQueues>(std::move(queues_), registry(), clock_);
  }
  MUSTER_RETURN_IF_ERROR(OpenPatiently(
      "the records", urls.records,
      [&] {
        return Into(&sync_,
                    backends_->OpenSyncStore(urls.records, backend::Mode::kReadWrite, fail));
      },
      stop));
  MUSTER_RETURN_IF_ERROR(OpenPatiently(
      "the streams", urls.streams,
      [&] {
        return Into(&streams_, backends_->OpenEventStreamStore(
                                   urls.streams, backend::Mode::kReadWrite, clock_, fail));
      },
      stop));
  MUSTER_RETURN_IF_ERROR(OpenPatiently(
      "the blobs", urls.blobs, [&] { return Into(&blobs_, backends_->OpenBlobStore(urls.blobs)); },
      stop));
  return OpenPatiently(
      "the buses", urls.buses,
      [&] {
        MUSTER_RETURN_IF_ERROR(Into(&bus_, backends_->OpenTriggerBus(urls.buses)));
        return Into(&heartbeats_, backends_->OpenHeartbeatBus(urls.buses));
      },
      stop);
}

absl::Status Host::OpenPatiently(absl::string_view what, absl::string_view where,
                                 const std::function<absl::Status()>& open,
                                 const std::stop_token& stop) {
  base::IdleBackoff backoff({.maximum = kMaxOpenWait});
  std::string said;
  for (int failures = 1;; ++failures) {
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    if (const auto failed = Failure()) return *failed;
    const absl::Status opened = open();
    if (opened.ok()) break;
    if (!base::IsTransient(opened) && !base::MismatchOf(opened).has_value()) {
      return base::Annotate(opened, what);
    }
    // nats.c says of a thread that does not start no more than "System Error", as of a server that
    // does not answer; and waiting mends no limit.
    os::ExitUnlessThreadsStart(kThreadsToBeReady);
    const absl::Duration wait = std::min(
        backoff.Interval(failures), rpc::RetryAfter(opened).value_or(absl::InfiniteDuration()));
    if (const std::string why = base::InWords(opened); why != std::exchange(said, why)) {
      TellWaiting(what, where, opened, wait);
    }
    base::SleepUnlessStopped(clock_, wait, stop);
  }
  if (!said.empty()) base::Log(base::kInfo, "what was needed answers", {{"what", what}});
  base::MutexLock lock(&mu_);
  mismatch_.reset();
  return absl::OkStatus();
}

void Host::TellWaiting(absl::string_view what, absl::string_view where, const absl::Status& why,
                       absl::Duration again_in) {
  base::MutexLock lock(&mu_);
  waiting_for_ = absl::StrCat(what, ": ", base::InWords(why));
  mismatch_ = base::MismatchOf(why);
  base::Log(base::kWarning,
            mismatch_.has_value()
                ? "not ready: what is needed is set otherwise than it must be; it is looked at "
                  "until its settings are mended"
                : "not ready: what is needed does not answer; it is asked until it does",
            {{"what", what},
             {"where", options_.is_embedded() ? std::string(where) : nats::WithoutSecrets(where)},
             {"why", base::InWords(why)},
             {"again_in", base::DurationToString(absl::Trunc(again_in, absl::Milliseconds(1)))},
             {"at_most", base::DurationToString(kMaxOpenWait)}});
}

absl::Status Host::AwaitEnd(const std::stop_token& stop) {
  const std::stop_callback wake(stop, base::WakeAll{&mu_, &changed_});
  base::MutexLock lock(&mu_);
  while (!failed_.has_value() && !stop.stop_requested()) changed_.Wait(&mu_);
  return failed_.value_or(absl::OkStatus());
}

// Turns not ready first, so that clients send their work elsewhere; then finishes the running work.
void Host::Drain() {
  const absl::Duration end = clock_->Monotonic() + options_.drain_grace;
  base::Log(
      base::kInfo, "draining",
      {{"instance", options_.instance}, {"grace", base::DurationToString(options_.drain_grace)}});
  {
    base::MutexLock lock(&mu_);
    MUSTER_CHECK(open_, options_.instance, " is drained, and was not open");
    open_ = false;
    draining_ = true;
    TellReadyLocked();
  }
  // So that calls which nobody answers, one after the other, do not use the grace up.
  backends_->LimitPatience(options_.drain_grace / 3);
  role_->Drain(options_.drain_grace);
  server_->Drain(std::max(absl::ZeroDuration(), end - clock_->Monotonic()));
  role_->Close();
  base::Log(base::kInfo, "drained", {{"instance", options_.instance}});
}

void Host::OnConnection(bool connected) {
  base::MutexLock lock(&mu_);
  connected_ = connected;
  TellReadyLocked();
  if (connected && open_) role_->OnStoresBack();
}

std::optional<absl::Status> Host::Failure() {
  base::MutexLock lock(&mu_);
  return failed_;
}

void Host::OnFail(const absl::Status& status) {
  base::MutexLock lock(&mu_);
  if (!failed_.has_value()) failed_ = status;
  changed_.NotifyAll();
}

void Host::TellReadyLocked() {
  const bool ready = open_ && connected_;
  server_->SetReady(ready);
  if (health_ != nullptr) health_->SetReady(ready);
  if (std::exchange(told_ready_, ready) == ready) return;
  const absl::string_view message = ready ? "ready" : "not ready";
  base::Log(base::kInfo, message, {{"instance", options_.instance}});
  const std::string metrics = telemetry_ == nullptr ? "" : telemetry_->address();
  if (const absl::Status told = starter_.TellReady(ready, message, metrics); !told.ok()) {
    base::Log(base::kWarning, "what started this process does not hear whether it is ready",
              {{"why", told.ToString()}});
  }
}

void SwitchLogLevel(base::LogLevel level) {
  const bool was_debug = base::MinLogLevel() == base::kDebug;
  const base::LogLevel next = was_debug ? level : base::kDebug;
  if (!was_debug) base::SetMinLogLevel(next);
  base::Log(base::kInfo, "the log level changes", {{"to", base::LogLevelName(next)}});
  if (was_debug) base::SetMinLogLevel(next);
}

namespace {

os::StopOptions OnStop(const std::string& name, const HostOptions& options) {
  return {.grace = options.drain_grace + kExitSlack,
          .exit_code = kHurried,
          .when_late =
              absl::StrCat(name, ": it has not ended within its grace; others continue its work"),
          .when_hurried = absl::StrCat(name, ": stopped at once; others continue its work"),
          .on_user_signal = [level = options.log_level] { SwitchLogLevel(level); }};
}

}  // namespace

absl::Status RunRole(const std::string& program, HostOptions options, const MakeRole& make_role) {
  options.notify_socket = os::TakeNotifyAddress();
  base::SetLogFormat(options.log_format);
  base::SetMinLogLevel(options.log_level);
  WarnOfUnknownVariables();
  os::RaiseDescriptorLimit(rpc::kEnoughDescriptors);
  const os::StopSignals signals(OnStop(program, options));
  base::Clock* const clock = base::RealClock();
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Role> role, make_role(options, clock));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Host> host,
                          Host::Start(options, role.get(), clock));
  return host->Serve(signals.token());
}

int RunService(int argc, char** argv, const ServiceProgram& program) {
  os::PrepareProcess();
  const std::string name = absl::StrCat("muster-", program.role.name);
  os::ExitWhenExhausted(name, kExhausted);
  HostOptions options(program.role);
  CLI::App app(program.about, name);
  app.footer(
      "Each option is also an environment variable: MUSTER_ and its name in capitals.\n"
      "Exit codes: 0 ended by SIGTERM or SIGINT, 1 error, 2 usage, 5 no thread or memory left,\n"
      "130 ended at once");
  app.set_version_flag("--version", BuildInWords());
  AddHostOptions(&app, &options);
  if (program.add_options) program.add_options(&app);
  CheckNumbers(&app);
  CheckVariablesAreKnown(app);
  try {
    app.parse(argc, argv);
    TakeRefusedVariables(&app);
    TakeDefaultMetrics(&app, options.listen.front(), &options);
  } catch (const CLI::ParseError& error) {
    return AnswerParseError(app, error, {argv, static_cast<size_t>(argc)}) == 0 ? kDone : kMisused;
  }
  const absl::Status served = RunRole(name, options, program.make_role);
  if (served.ok()) return kDone;
  std::cerr << name << ": " << served.message() << std::endl;
  return kFailed;
}

}  // namespace muster::host
