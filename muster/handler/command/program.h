// SPDX-License-Identifier: Apache-2.0

// ProgramOf: the program of a command handler, found and described; StartProgram: starts it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "muster/handler/command/command_handler.h"
#include "muster/os/child_process.h"
#include "muster/os/scratch_folder.h"

namespace muster::handler::command {

// What is to be started, TMPDIR not included. Errors are those of CommandHandlerFactory.
absl::StatusOr<os::ProcessSpec> ProgramOf(const CommandOptions& options);

struct StartedProgram {
  std::unique_ptr<os::ScratchFolder> scratch;  // its TMPDIR; null where it inherits one
  std::unique_ptr<os::ChildProcess> child;
};

// The error says what keeps the program from starting, and what to mend where that is known.
// `spawner` must outlive the program.
absl::StatusOr<StartedProgram> StartProgram(os::ProcessSpec program, os::Spawner* spawner);

}  // namespace muster::handler::command
