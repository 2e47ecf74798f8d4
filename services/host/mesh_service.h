// SPDX-License-Identifier: Apache-2.0

// MeshService: lists the live instances that this instance knows from heartbeats
// (proto/muster/v1/mesh_service.proto).
#pragma once

#include "grpcpp/server_context.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/roster.h"
#include "muster/v1/mesh_service.grpc.pb.h"

namespace muster::host {

// Thread-safe.
class MeshService final : public v1::MeshService::Service {
 public:
  // Neither is owned. `roster` lists the instances; `bus` says whether heartbeats can arrive.
  MeshService(bus::Roster* roster, bus::HeartbeatBus* bus) : roster_(roster), bus_(bus) {}

  grpc::Status ListInstances(grpc::ServerContext* context, const v1::ListInstancesRequest* request,
                             v1::ListInstancesResponse* response) override;

 private:
  bus::Roster* const roster_;     // not owned
  bus::HeartbeatBus* const bus_;  // not owned
};

}  // namespace muster::host
