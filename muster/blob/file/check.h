// Checks every blob of a directory. A repair moves a damaged one onto the quarantine: who holds its
// name is told that it is gone, and makes what it held again.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/os/damage.h"

namespace muster::blob::file {

// NotFound: there is no such directory. FailedPrecondition: a process owns it (only a repair is in
// its way), or a newer muster wrote a blob.
absl::StatusOr<os::CheckSummary> CheckBlobs(const std::string& dir,
                                            const os::CheckOptions& options);

}  // namespace muster::blob::file
