// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/release_service.h"

#include <optional>
#include <string>

#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"

namespace muster::initiator::api {
namespace {

absl::Status CheckName(const std::string& name) {
  const absl::Status status = release::ValidateName(name);
  if (status.ok()) return status;
  return rpc::WithViolations(status, {{"name", std::string(status.message())}});
}

absl::Status CheckEpoch(const std::string& field, const std::optional<int64_t>& epoch) {
  if (!epoch.has_value() || *epoch >= 1) return absl::OkStatus();
  return rpc::WithViolations(absl::InvalidArgumentError(field + " is below 1"),
                             {{field, "is below 1"}});
}

void FillState(const release::ReleaseState& state, v1::ReleaseStatus* status) {
  status->set_name(state.name);
  status->set_armed_epoch(state.armed_epoch);
  status->set_released_epoch(state.released_epoch);
  if (state.armed != absl::InfinitePast()) *status->mutable_armed() = base::ToProto(state.armed);
  if (state.released != absl::InfinitePast()) {
    *status->mutable_released() = base::ToProto(state.released);
  }
}

}  // namespace

grpc::Status ReleaseService::Release(grpc::ServerContext* context,
                                     const v1::ReleaseRequest* request,
                                     v1::ReleaseResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    std::optional<int64_t> epoch;
    if (request->has_epoch()) epoch = request->epoch();
    MUSTER_RETURN_IF_ERROR(CheckName(request->name()));
    MUSTER_RETURN_IF_ERROR(CheckEpoch("epoch", epoch));
    // Some may be gone, and have said so, before the call returns.
    FillWorkers(request->name(), response->mutable_status());
    MUSTER_ASSIGN_OR_RETURN(const auto state, releases_->Release(request->name(), epoch));
    FillState(state, response->mutable_status());
    return absl::OkStatus();
  });
}

grpc::Status ReleaseService::Arm(grpc::ServerContext* context, const v1::ArmRequest* request,
                                 v1::ArmResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    std::optional<int64_t> after;
    if (request->has_after()) after = request->after();
    MUSTER_RETURN_IF_ERROR(CheckName(request->name()));
    MUSTER_RETURN_IF_ERROR(CheckEpoch("after", after));
    MUSTER_ASSIGN_OR_RETURN(const auto state, releases_->Arm(request->name(), after));
    FillState(state, response->mutable_status());
    FillWorkers(request->name(), response->mutable_status());
    return absl::OkStatus();
  });
}

grpc::Status ReleaseService::GetRelease(grpc::ServerContext* context,
                                        const v1::GetReleaseRequest* request,
                                        v1::GetReleaseResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckName(request->name()));
    MUSTER_ASSIGN_OR_RETURN(const auto state, releases_->Get(request->name()));
    FillState(state, response->mutable_status());
    FillWorkers(request->name(), response->mutable_status());
    return absl::OkStatus();
  });
}

void ReleaseService::FillWorkers(absl::string_view name, v1::ReleaseStatus* status) const {
  for (const bus::RosterEntry& entry : roster_->List(v1::ROLE_PROCESSOR)) {
    const v1::Standby& standby = entry.heartbeat.standby();
    if (entry.leaving || standby.release() != name) continue;
    v1::ReleaseWorker* const worker = status->add_workers();
    worker->set_instance(entry.heartbeat.instance().instance());
    worker->set_epoch(standby.epoch());
    *worker->mutable_parked() = standby.parked();
    if (standby.has_left()) *worker->mutable_left() = standby.left();
  }
}

}  // namespace muster::initiator::api
