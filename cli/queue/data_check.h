// Checks a data directory as `muster run` uses it: what the backends stored, and what the parts say
// of each other.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/os/damage.h"

namespace muster::cli {

// FailedPrecondition: a run works with the directory. NotFound: nothing is there.
absl::StatusOr<os::CheckSummary> CheckRunData(const std::string& data_dir,
                                              const os::CheckOptions& options, base::Clock* clock);

}  // namespace muster::cli
