// SPDX-License-Identifier: Apache-2.0

// HostTelemetry: the registry of a service, the metrics that every service has, the server that
// shows them to Prometheus and answers probes, and the export to an OpenTelemetry collector.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/backend/backend.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/telemetry/metrics_server.h"
#include "muster/telemetry/otlp/otlp.h"
#include "muster/telemetry/registry.h"
#include "services/host/host_options.h"

namespace muster::host {

// Whether a service may serve its metrics at options.metrics: InvalidArgument, if others could read
// them and the options do not allow it.
absl::Status CheckMetricsReach(const HostOptions& options);

// Thread-safe, but for Watch, ShowNatsStreams, TellReadiness and Close.
class HostTelemetry {
 public:
  // Serves at options.metrics if that is set, and exports if the environment says so, from now on;
  // null: neither. `clock` is not owned. InvalidArgument: others could reach the address, and the
  // options do not allow it; or a variable is wrong. Unavailable: as MetricsServer::Start, if the
  // address is not a default one, without which a service does, too.
  static absl::StatusOr<std::unique_ptr<HostTelemetry>> Start(const HostOptions& options,
                                                              base::Clock* clock);

  telemetry::Registry* registry() { return &registry_; }
  // Null: batches are not traced.
  telemetry::SpanSink* spans() { return otlp_ == nullptr ? nullptr : otlp_->spans(); }
  // Where metrics are served, also after Close(); empty: nowhere.
  const std::string& address() const { return address_; }

  // Has /readyz answer what `readiness` says, instead of that the service starts. It is called by
  // several threads until Close() or the destructor returns.
  void TellReadiness(std::function<absl::Status()> readiness) ABSL_LOCKS_EXCLUDED(mu_);
  // Shows the connections of `backends`, which outlives this, or Close().
  void Watch(backend::Backends* backends);
  // Shows what their servers keep, which is asked at each scrape. As Watch.
  void ShowNatsStreams(backend::Backends* backends);
  // Serves no more, and reads nothing any more; what is recorded later is still exported. Handles
  // of the registry stay valid.
  void Close();

 private:
  HostTelemetry();
  absl::Status Serve(const HostOptions& options, base::Clock* clock);
  absl::Status ServeIfPossible(const HostOptions& options, base::Clock* clock);
  absl::Status Readiness() ABSL_LOCKS_EXCLUDED(mu_);

  base::Mutex mu_;
  std::function<absl::Status()> readiness_ ABSL_GUARDED_BY(mu_);  // empty: it is not known yet
  telemetry::Registry registry_;
  std::unique_ptr<telemetry::Reading> process_;
  std::unique_ptr<telemetry::Reading> damage_;
  std::unique_ptr<telemetry::Reading> connections_;
  std::unique_ptr<telemetry::Reading> streams_;
  std::unique_ptr<telemetry::MetricsServer> server_;  // null: it is not wanted
  std::string address_;                               // set once, by Start
  std::unique_ptr<telemetry::OtlpExport> otlp_;       // likewise
};

}  // namespace muster::host
