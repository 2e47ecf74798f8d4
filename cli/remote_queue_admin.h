// The queues that an initiator serves.
#pragma once

#include <memory>

#include "cli/mesh.h"
#include "cli/queue_admin.h"

namespace muster::cli {

std::unique_ptr<QueueAdmin> NewRemoteQueueAdmin(std::unique_ptr<MeshClient> mesh);

}  // namespace muster::cli
