#include "services/processor/processor_role.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster::processor {

ProcessorRole::ProcessorRole(const handler::HandlerRegistry* handlers,
                             const host::HostOptions& host, ServiceOptions options,
                             base::Clock* clock)
    : host_(host),
      clock_(clock),
      service_(handlers, std::move(options), clock),
      workers_(&service_, clock),
      load_(&service_) {}

// After a transient error it is called again: what is there already stays.
absl::Status ProcessorRole::Open(const host::Stores& stores, const host::Fail&) {
  if (membership_ == nullptr) MUSTER_RETURN_IF_ERROR(Join(stores));
  if (jobs_ == nullptr) {
    jobs_ = std::make_unique<job::JobRegistry>(stores.sync, clock_);
    cancelled_ = std::make_unique<item::CancelledBatches>(stores.sync);
  }
  return service_.Start({stores.queues, stores.bus, stores.blobs, clock_, cancelled_.get()},
                        jobs_.get());
}

absl::Status ProcessorRole::Join(const host::Stores& stores) {
  v1::InstanceInfo self;
  self.set_role(v1::ROLE_PROCESSOR);
  self.set_instance(host_.instance);
  self.set_address(stores.address);
  const auto complete = [this](absl::Duration window, v1::Heartbeat* heartbeat) {
    load_.AddTo(window, heartbeat);
  };
  MUSTER_ASSIGN_OR_RETURN(
      membership_, host::Membership::Join(stores.heartbeats, std::move(self), complete, clock_));
  return absl::OkStatus();
}

std::vector<rpc::ServedService> ProcessorRole::services() {
  return {{v1::WorkerService::service_full_name(), &workers_},
          {v1::MeshService::service_full_name(), &membership_->service()}};
}

void ProcessorRole::Drain(absl::Duration grace) {
  if (membership_ != nullptr) membership_->Leave();
  service_.Stop(grace);
}

void ProcessorRole::Close() {
  membership_.reset();
  service_.Close();
  cancelled_.reset();
  jobs_.reset();
}

}  // namespace muster::processor
