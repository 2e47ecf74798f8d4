// The batches that an initiator serves, with what its controller has counted.
#pragma once

#include <memory>

#include "cli/batch/batch_shelf.h"
#include "cli/server/mesh.h"

namespace muster::cli {

std::unique_ptr<BatchAdmin> NewRemoteBatchAdmin(std::unique_ptr<MeshClient> mesh);

}  // namespace muster::cli
