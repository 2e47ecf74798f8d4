#include "cli/queue/queue_admin.h"

#include <utility>

#include "cli/queue/local_queue_admin.h"
#include "cli/queue/remote_queue_admin.h"
#include "cli/server/mesh.h"
#include "cli/server/place.h"
#include "muster/base/status_macros.h"

namespace muster::cli {

absl::StatusOr<std::unique_ptr<QueueAdmin>> OpenQueueAdmin(const CommonOptions& options,
                                                           const Environment& environment) {
  if (!options.server.named()) {
    MUSTER_RETURN_IF_ERROR(RequireDataDir(options.data_dir));
    return NewLocalQueueAdmin(options.data_dir, environment.clock);
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
  return NewRemoteQueueAdmin(std::move(mesh));
}

}  // namespace muster::cli
