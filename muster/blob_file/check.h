// Checks every blob of a directory. A repair moves a damaged one onto the quarantine: who holds its
// name is told that it is gone, and makes what it held again.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/damage/damage.h"

namespace muster::blob_file {

// NotFound: there is no such directory. FailedPrecondition: a process owns it (only a repair is in
// its way), or a newer muster wrote a blob.
absl::StatusOr<damage::CheckSummary> CheckBlobs(const std::string& dir,
                                                const damage::CheckOptions& options);

}  // namespace muster::blob_file
