// SPDX-License-Identifier: Apache-2.0

// How commands show a batch.
#pragma once

#include <string>
#include <vector>

#include "cli/batch/batch_admin.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// All that is known of a batch; what is not known is left out, but for the counts, which are null.
nlohmann::ordered_json JsonOf(const BatchView& view);

// "in batch 9": the batch that retries it; "of line 41": the line that it was in the batch
// that it retries; both, "of line 41, in batch 9"; empty: neither.
std::string RetryText(const report::RejectionRow& row);

// "sealed, waits, at risk"; "complete, late".
std::string StateOf(const BatchView& view);

}  // namespace muster::cli
