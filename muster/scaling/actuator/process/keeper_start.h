// Starts keepers as processes that outlive this one.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/os/file_descriptor.h"
#include "muster/scaling/actuator/process/keeper.h"

namespace muster::scaling::actuator::process {

// One that has not answered yet.
struct LaunchedKeeper {
  pid_t pid = 0;  // a child of this process, to be waited for when it has ended
  os::FileDescriptor answer;
};

// Runs `keeper`, the path of muster-replica-keeper, in a session of its own. `environment` is set
// on top of this process's own, for the keeper and its program.
absl::StatusOr<LaunchedKeeper> LaunchKeeper(
    const std::string& keeper, const KeeperOrder& order,
    const std::vector<std::pair<std::string, std::string>>& environment);

// What it answers: OK once the program was executed. Otherwise it has ended, or, after `limit`, was
// killed (Unavailable).
absl::Status AwaitAnswer(const LaunchedKeeper& launched, absl::Duration limit);

}  // namespace muster::scaling::actuator::process
