// SPDX-License-Identifier: Apache-2.0

// Finds a program as a shell would, and says why one cannot be started, as far as its files tell.
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

// Why exec refuses the file `path`, which FindProgram has found: FailedPrecondition when it is
// empty, or a text without #!, or a script whose first line names an interpreter that is not there,
// or ends as lines of Windows do. OK: nothing is known against it.
absl::Status CheckProgram(const std::string& path);

// What may lie behind the error `why` of starting `path` in `working_dir` (empty: that of this
// process), in words that name what to mend; `why` itself where nothing is known.
absl::Status ExplainStart(const absl::Status& why, const std::string& path,
                          const std::string& working_dir);

// NotFound: argv[0] is an interpreter (python3, bash, node …) and the next argument the path of a
// script, with a slash or an extension, that does not exist; relative to `working_dir`, as above. A
// script of Python may stand behind -u and the like. Other options, modules and subcommands are no
// such path, and are not looked for.
absl::Status CheckScript(const std::vector<std::string>& argv, absl::string_view working_dir);

// The absolute path of the script that CheckScript looks for; nullopt: argv has none.
std::optional<std::string> ScriptOf(const std::vector<std::string>& argv,
                                    absl::string_view working_dir);

}  // namespace muster::os
