#include "cli/batch/batch_shelf.h"

#include <utility>

#include "cli/batch/local_batch_shelf.h"
#include "cli/batch/remote_batch_shelf.h"
#include "cli/server/mesh.h"
#include "cli/server/place.h"
#include "muster/base/status_macros.h"

namespace muster::cli {

absl::StatusOr<std::unique_ptr<BatchAdmin>> OpenBatchAdmin(const CommonOptions& options,
                                                           const Environment& environment) {
  if (!options.server.named()) {
    MUSTER_RETURN_IF_ERROR(RequireDataDir(options.data_dir));
    return OpenLocalBatchAdmin(options.data_dir, environment.clock);
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
  return NewRemoteBatchAdmin(std::move(mesh));
}

}  // namespace muster::cli
