// SPDX-License-Identifier: Apache-2.0
#include "services/host/host_telemetry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/damage.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/rpc/address.h"
#include "muster/rpc/grpc_log.h"
#include "muster/telemetry/catalogue.h"
#include "services/host/build_info.h"
#include "services/host/nats_stream_metrics.h"
#include "services/host/process_metrics.h"

namespace muster::host {

absl::Status CheckMetricsReach(const HostOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::Address address, rpc::ParseAddress(options.metrics));
  if (address.IsLoopback() || options.allow_plaintext || options.allow_plaintext_metrics) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("metrics at ", options.metrics,
                   ": this is neither localhost nor 127.0.0.1 nor [::1], and there is no TLS: ",
                   "others could read them, so it needs --allow-plaintext-metrics"));
}

namespace {

std::unique_ptr<telemetry::Reading> ReadDamage(telemetry::Registry* registry) {
  return telemetry::ReadAtScrape(
      registry, "damage", {telemetry::kDamage.entry()}, [](telemetry::Samples* samples) {
        const auto set = [samples](const char* where, base::Damaged what) {
          samples->Set(telemetry::kDamage, {where}, static_cast<double>(base::DamageMet(what)));
        };
        set("store", base::Damaged::kStore);
        set("report", base::Damaged::kReport);
        set("blob", base::Damaged::kBlob);
        set("content", base::Damaged::kContent);
        return absl::OkStatus();
      });
}

}  // namespace

HostTelemetry::HostTelemetry()
    : process_(ReadProcess(&registry_)), damage_(ReadDamage(&registry_)) {
  // So that a scrape shows their types, also where nothing is sent.
  telemetry::Counters<2>(&registry_, telemetry::kTelemetryExports);
  telemetry::Counters<1>(&registry_, telemetry::kTelemetryDropped);
  telemetry::Gauges<2>(&registry_, telemetry::kBuildInfo)
      .With({BuildVersion(), BuildRevision()})
      .Set(1);
}

absl::StatusOr<std::unique_ptr<HostTelemetry>> HostTelemetry::Start(const HostOptions& options,
                                                                    base::Clock* clock) {
  if (options.metrics.empty() && !telemetry::WantsOtlp()) return nullptr;
  std::unique_ptr<HostTelemetry> started(new HostTelemetry());
  if (!options.metrics.empty()) MUSTER_RETURN_IF_ERROR(started->ServeIfPossible(options, clock));
  // The exporter's channels are none of rpc::OpenChannel's, which routes it, and may come first.
  rpc::PrepareGrpc();
  MUSTER_ASSIGN_OR_RETURN(started->otlp_,
                          telemetry::OtlpExport::StartIfWanted(
                              {options.service, options.instance, std::string(BuildVersion())},
                              &started->registry_, clock));
  if (started->server_ == nullptr && started->otlp_ == nullptr) return nullptr;
  return started;
}

// Several services of one host may have ports that are kMetricsPortOffset apart.
absl::Status HostTelemetry::ServeIfPossible(const HostOptions& options, base::Clock* clock) {
  const absl::Status serves = Serve(options, clock);
  if (serves.ok() || !options.metrics_are_default) return serves;
  base::Log(base::kWarning,
            "no metrics: their default port cannot be had; --metrics HOST:PORT names another one, "
            "and --metrics '' none",
            {{"why", serves.message()}});
  return absl::OkStatus();
}

absl::Status HostTelemetry::Serve(const HostOptions& options, base::Clock* clock) {
  MUSTER_RETURN_IF_ERROR(CheckMetricsReach(options));
  telemetry::MetricsServerOptions server;
  server.address = options.metrics;
  server.clock = clock;
  server.readiness = [this] { return Readiness(); };
  MUSTER_ASSIGN_OR_RETURN(
      server_, telemetry::MetricsServer::Start(server, [this](telemetry::TextFormat format) {
        return registry_.Scrape(format);
      }));
  address_ = server_->address();
  base::Log(base::kInfo, "metrics", {{"at", absl::StrCat(address(), "/metrics")}});
  return absl::OkStatus();
}

void HostTelemetry::TellReadiness(std::function<absl::Status()> readiness) {
  base::MutexLock lock(&mu_);
  readiness_ = std::move(readiness);
}

absl::Status HostTelemetry::Readiness() {
  std::function<absl::Status()> readiness;
  {
    base::MutexLock lock(&mu_);
    readiness = readiness_;
  }
  return readiness ? readiness() : absl::UnavailableError("it is starting");
}

void HostTelemetry::Watch(backend::Backends* backends) {
  connections_ = telemetry::ReadAtScrape(
      &registry_, "connections",
      {telemetry::kNatsReconnects.entry(), telemetry::kNatsErrors.entry(),
       telemetry::kNatsInFlight.entry()},
      [backends](telemetry::Samples* samples) {
        for (const backend::NatsActivity& seen : backends->Activity()) {
          const std::string name = seen.is_prompt ? "prompt" : "main";
          samples->Set(telemetry::kNatsReconnects, {name}, static_cast<double>(seen.reconnects));
          samples->Set(telemetry::kNatsErrors, {name}, static_cast<double>(seen.errors));
          samples->Set(telemetry::kNatsInFlight, {name}, static_cast<double>(seen.in_flight));
        }
        return absl::OkStatus();
      });
}

void HostTelemetry::ShowNatsStreams(backend::Backends* backends) {
  streams_ = ReadNatsStreams(&registry_, backends);
}

void HostTelemetry::Close() {
  server_.reset();
  streams_.reset();
  connections_.reset();
  process_.reset();
  damage_.reset();
}

}  // namespace muster::host
