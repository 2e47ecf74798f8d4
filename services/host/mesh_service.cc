// SPDX-License-Identifier: Apache-2.0
#include "services/host/mesh_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"

namespace muster::host {
namespace {

absl::Status RequireRole(v1::Role role) {
  if (v1::Role_IsValid(role)) return absl::OkStatus();
  return rpc::WithViolations(absl::InvalidArgumentError(absl::StrCat("there is no role ", role)),
                             {{"role", "there is no such role"}});
}

bool FitIntoOneAnswer(const std::vector<bus::RosterEntry>& entries) {
  size_t bytes = 0;
  for (const bus::RosterEntry& entry : entries) bytes += entry.heartbeat.ByteSizeLong();
  return bytes <= bus::kMaxLoadBytes;
}

}  // namespace

grpc::Status MeshService::ListInstances(grpc::ServerContext* context,
                                        const v1::ListInstancesRequest* request,
                                        v1::ListInstancesResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    if (absl::Status status = RequireRole(request->role()); !status.ok()) return status;
    std::optional<v1::Role> role;
    if (request->role() != v1::ROLE_UNSPECIFIED) role = request->role();
    std::vector<bus::RosterEntry> entries = roster_->List(role);
    response->set_disconnected(!bus_->CanReceive());
    const bool with_load = request->with_load() && FitIntoOneAnswer(entries);
    for (bus::RosterEntry& entry : entries) {
      v1::Instance* const instance = response->add_instances();
      *instance->mutable_info() = entry.heartbeat.instance();
      *instance->mutable_last_heartbeat() = base::ToProto(entry.heard);
      instance->set_leaving(entry.leaving);
      if (with_load) *instance->mutable_heartbeat() = std::move(entry.heartbeat);
    }
    return absl::OkStatus();
  });
}

}  // namespace muster::host
