// SPDX-License-Identifier: Apache-2.0

// OpenLocalBatchAdmin: the batches of a data directory.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/batch/batch_admin.h"
#include "muster/base/clock.h"

namespace muster::cli {

// Beside a run that works with the directory, or alone. `clock` is not owned.
absl::StatusOr<std::unique_ptr<BatchAdmin>> OpenLocalBatchAdmin(const std::string& data_dir,
                                                                base::Clock* clock);

}  // namespace muster::cli
