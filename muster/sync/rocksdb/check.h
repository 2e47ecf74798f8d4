// Checks every record of a sync store. A repair takes a damaged one away: whoever keeps something
// under its key must make it again.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/os/damage.h"

namespace muster::sync::rocksdb {

// NotFound: there is no store. FailedPrecondition: a process has it open, or a newer muster wrote a
// record. DataLoss: it cannot be looked at, which the findings were told.
absl::StatusOr<os::CheckSummary> CheckSync(const std::string& dir, const os::CheckOptions& options);

}  // namespace muster::sync::rocksdb
