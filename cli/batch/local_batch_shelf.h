// The batches of a data directory: its ledger and its report.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/batch/batch_shelf.h"
#include "muster/base/clock.h"

namespace muster::cli {

// Beside a run that works with the directory, or alone. `clock` is not owned.
absl::StatusOr<std::unique_ptr<BatchAdmin>> OpenLocalBatchAdmin(const std::string& data_dir,
                                                                base::Clock* clock);

}  // namespace muster::cli
