// Workers: the processors of a mesh, and the WorkerService of each.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/server/mesh.h"
#include "muster/base/status_macros.h"
#include "muster/rpc/limits.h"
#include "muster/v1/mesh_service.pb.h"
#include "muster/v1/worker_service.grpc.pb.h"

namespace muster::cli {

// A processor as the initiator knows it.
struct Worker {
  v1::Instance instance;
  Peer peer;

  const std::string& name() const { return instance.info().instance(); }
  // Those that leave, and those without an address, are not worth a call.
  bool serves() const { return !instance.leaving() && !instance.info().address().empty(); }

  // One call of its WorkerService. Thread-safe.
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> Call(const MeshClient& mesh, Method method, const Request& request,
                                absl::Duration timeout = rpc::kDefaultCallTimeout) const {
    const auto stub = v1::WorkerService::NewStub(peer.channel);
    Response response;
    MUSTER_RETURN_IF_ERROR(mesh.Call(*stub, method, request, &response, peer, timeout));
    return response;
  }
};

// Those that the initiator has heard lately, in order of name; with a name, that one only.
// NotFound: there is none of that name.
absl::StatusOr<std::vector<Worker>> FindWorkers(MeshClient& mesh, const std::string& name);

}  // namespace muster::cli
