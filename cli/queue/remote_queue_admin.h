// The queues that an initiator serves.
#pragma once

#include <memory>

#include "cli/queue/queue_admin.h"
#include "cli/server/mesh.h"

namespace muster::cli {

std::unique_ptr<QueueAdmin> NewRemoteQueueAdmin(std::unique_ptr<MeshClient> mesh);

}  // namespace muster::cli
