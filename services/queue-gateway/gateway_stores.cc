// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/gateway_stores.h"

#include <string>
#include <utility>

#include "muster/base/log.h"
#include "muster/base/quantity.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/os/durable_file.h"
#include "services/host/host_options.h"

namespace muster::queue_gateway {
namespace {

backend::NatsOptions NatsOptionsOf(const Options& options, ServingState* state) {
  backend::NatsOptions nats = options.host.nats;
  nats.connection.name = options.host.instance;
  // What clients hold outlives a gateway: another one settles it. So the gateway is no holder.
  nats.holder = "";
  nats.connection.on_change = [state](bool connected) { state->Connected(connected); };
  nats.connection.on_refused = [state](const absl::Status& why) { state->Fail(why); };
  return nats;
}

}  // namespace

GatewayStores::GatewayStores(const Options& options, base::Clock* clock,
                             telemetry::Registry* metrics, ServingState* state)
    : state_(state), clock_(clock), backends_(NatsOptionsOf(options, state), metrics) {}

absl::StatusOr<std::unique_ptr<GatewayStores>> GatewayStores::Open(const Options& options,
                                                                   base::Clock* clock,
                                                                   telemetry::Registry* metrics,
                                                                   ServingState* state,
                                                                   const std::stop_token& stop) {
  std::unique_ptr<GatewayStores> stores(new GatewayStores(options, clock, metrics, state));
  base::IdleBackoff backoff({.maximum = host::kMaxOpenWait});
  std::string said;
  for (int failures = 1; !stop.stop_requested(); ++failures) {
    const absl::Status opened = stores->OpenOnce(options);
    if (opened.ok()) return stores;
    const bool may_mend = base::IsTransient(opened) || base::MismatchOf(opened).has_value();
    if (!options.is_on_nats() || !may_mend) return opened;
    if (const std::string why = opened.ToString(); why != std::exchange(said, why)) {
      base::Log(base::kWarning, "not ready: the NATS server is asked until it answers as it must",
                {{"where", nats::WithoutSecrets(options.host.nats_url)},
                 {"why", why},
                 {"at_most", base::DurationToString(host::kMaxOpenWait)}});
    }
    base::SleepUnlessStopped(clock, backoff.Interval(failures), stop);
  }
  return absl::CancelledError("stopped");
}

absl::Status GatewayStores::OpenOnce(const Options& options) {
  std::string queues = options.host.nats_url;
  std::string records = options.host.nats_url;
  if (!options.is_on_nats()) {
    MUSTER_RETURN_IF_ERROR(
        base::Annotate(os::CreateFolder(options.data_dir), "the data directory"));
    const backend::DataDirUrls urls(options.data_dir);
    queues = urls.queue;
    records = urls.sync;
  }
  const auto on_failure = [state = state_](const absl::Status& why) { state->OnlyRead(why); };
  MUSTER_ASSIGN_OR_RETURN(
      queues_, backends_.OpenQueueStore(queues, backend::Mode::kReadWrite,
                                        backend::Holders::kElsewhere, clock_, on_failure));
  MUSTER_ASSIGN_OR_RETURN(records_,
                          backends_.OpenSyncStore(records, backend::Mode::kReadWrite, on_failure));
  if (options.is_on_nats()) {
    MUSTER_ASSIGN_OR_RETURN(bus_, backends_.OpenTriggerBus(options.host.nats_url));
  }
  if (!queues_->traits().per_receive_visibility || !queues_->traits().body_update) {
    completed_ = std::make_unique<operations::CompletingStore>(queues_.get(), clock_);
  }
  return absl::OkStatus();
}

operations::Stores GatewayStores::stores() const {
  queue::QueueStore* const queues =
      completed_ == nullptr ? queues_.get() : static_cast<queue::QueueStore*>(completed_.get());
  return {queues, records_.get(), clock_};
}

}  // namespace muster::queue_gateway
