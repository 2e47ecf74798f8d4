// MeshService: who is there, as this instance has heard (proto/muster/v1/mesh_service.proto).
#pragma once

#include "grpcpp/server_context.h"
#include "muster/heartbeat/heartbeat_bus.h"
#include "muster/mesh/roster.h"
#include "muster/v1/mesh_service.grpc.pb.h"

namespace muster::mesh {

// Thread-safe.
class MeshService final : public v1::MeshService::Service {
 public:
  // Neither is owned: who was heard, and by what.
  MeshService(Roster* roster, heartbeat::HeartbeatBus* bus) : roster_(roster), bus_(bus) {}

  grpc::Status ListInstances(grpc::ServerContext* context, const v1::ListInstancesRequest* request,
                             v1::ListInstancesResponse* response) override;

 private:
  Roster* const roster_;                // not owned
  heartbeat::HeartbeatBus* const bus_;  // not owned
};

}  // namespace muster::mesh
