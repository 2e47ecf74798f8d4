// Where a program is, as a shell would find it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::handler_command {

// The path of `name` that exec takes: looked up in PATH when it has no slash, else relative to
// `working_dir` (empty: that of this process). NotFound; PermissionDenied when it cannot be
// executed.
absl::StatusOr<std::string> FindProgram(absl::string_view name, absl::string_view working_dir);

}  // namespace muster::handler_command
