// Finds a program as a shell would, and checks that its script exists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::os {

// PATH where there is none, as a shell takes it.
inline constexpr char kUsualPath[] = "/usr/local/bin:/usr/bin:/bin";

// The path of `name` that exec takes: looked up in PATH when it has no slash, else relative to
// `working_dir` (empty: that of this process). NotFound; PermissionDenied when it cannot be
// executed.
absl::StatusOr<std::string> FindProgram(absl::string_view name, absl::string_view working_dir);

// NotFound: argv[0] is an interpreter (python3, bash, node …) and argv[1] the path of a script,
// with a slash or an extension, that does not exist; relative to `working_dir`, as above. Options,
// modules and subcommands are no such path, and are not looked for.
absl::Status CheckScript(const std::vector<std::string>& argv, absl::string_view working_dir);

// The absolute path of the script that CheckScript looks for; nullopt: argv has none.
std::optional<std::string> ScriptOf(const std::vector<std::string>& argv,
                                    absl::string_view working_dir);

}  // namespace muster::os
