// Cures: what a message about a missing name says one can do.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/output/environment.h"

namespace muster::cli {

// `status` with "; `command` shows those there are" at its end, code and payloads kept, when it is
// a NotFound that says nothing yet of what to do. Everything else as it is.
absl::Status WithListHint(const absl::Status& status, absl::string_view command);
// With the data directory that the command works on, where it is one.
absl::Status WithListHint(const absl::Status& status, absl::string_view command,
                          const CommonOptions& options);

}  // namespace muster::cli
