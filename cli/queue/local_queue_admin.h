// The queues of a data directory.
#pragma once

#include <memory>
#include <string>

#include "cli/queue/queue_admin.h"
#include "muster/base/clock.h"

namespace muster::cli {

// Looks beside a run that works with the directory; changes are FailedPrecondition meanwhile.
// `clock` is not owned.
std::unique_ptr<QueueAdmin> NewLocalQueueAdmin(const std::string& data_dir, base::Clock* clock);

}  // namespace muster::cli
