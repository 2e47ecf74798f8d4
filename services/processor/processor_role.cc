#include "services/processor/processor_role.h"

#include <utility>

namespace muster::processor {

ProcessorRole::ProcessorRole(const handler::HandlerRegistry* handlers, ServiceOptions options,
                             base::Clock* clock)
    : clock_(clock), service_(handlers, std::move(options), clock), workers_(&service_, clock) {}

std::vector<rpc::ServedService> ProcessorRole::services() {
  return {{v1::WorkerService::service_full_name(), &workers_}};
}

absl::Status ProcessorRole::Open(const host::Stores& stores, const host::Fail&) {
  jobs_ = std::make_unique<job_registry::JobRegistry>(stores.sync, clock_);
  return service_.Start({stores.queues, stores.bus, stores.blobs, clock_}, jobs_.get());
}

void ProcessorRole::Drain(absl::Duration grace) { service_.Stop(grace); }

void ProcessorRole::Close() {
  service_.Close();
  jobs_.reset();
}

}  // namespace muster::processor
