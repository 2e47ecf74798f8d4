// Redriving work items of a data directory.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/item/redrive.h"

namespace muster::cli {

// As item::RedriveItems, with the stores of `data_dir`. FailedPrecondition while a run holds it.
absl::StatusOr<item::RedriveSummary> RedriveLocally(const std::string& data_dir,
                                                    const item::RedriveRequest& request,
                                                    base::Clock* clock);

}  // namespace muster::cli
