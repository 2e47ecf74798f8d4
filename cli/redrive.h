// Redriving work items of a data directory.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/redrive/redrive.h"

namespace muster::cli {

// As redrive::RedriveItems, with the stores of `data_dir`. FailedPrecondition while a run holds it.
absl::StatusOr<redrive::RedriveSummary> RedriveLocally(const std::string& data_dir,
                                                       const redrive::RedriveRequest& request,
                                                       base::Clock* clock);

}  // namespace muster::cli
