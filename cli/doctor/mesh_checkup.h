// CheckMesh: what of a mesh does not answer, is not ready, does not fit together or waits.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/doctor/finding.h"
#include "cli/output/environment.h"

namespace muster::cli {

// Changes nothing. What cannot be looked at is a finding too; only an initiator that does not
// answer, or is none, is an error. `version` is this program's.
absl::StatusOr<Findings> CheckMesh(const CommonOptions& options, const std::string& account,
                                   const std::string& version, const Environment& environment);

}  // namespace muster::cli
