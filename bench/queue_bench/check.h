// SPDX-License-Identifier: Apache-2.0

// Checks that end the process: a benchmark whose store fails has no result.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::queue_bench {

// Says why on stderr, and ends the process with 1 at once. From any thread.
[[noreturn]] void Die(absl::string_view why);

// Dies unless it is OK.
void Check(const absl::Status& status);

}  // namespace muster::queue_bench
