// MeshService: who is there, as this instance has heard (proto/muster/v1/mesh_service.proto).
#pragma once

#include "grpcpp/server_context.h"
#include "muster/mesh/roster.h"
#include "muster/v1/mesh_service.grpc.pb.h"

namespace muster::mesh {

// Thread-safe.
class MeshService final : public v1::MeshService::Service {
 public:
  // `roster` is not owned.
  explicit MeshService(Roster* roster) : roster_(roster) {}

  grpc::Status ListInstances(grpc::ServerContext* context, const v1::ListInstancesRequest* request,
                             v1::ListInstancesResponse* response) override;

 private:
  Roster* const roster_;  // not owned
};

}  // namespace muster::mesh
