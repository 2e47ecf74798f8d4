// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/program.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/os/find_program.h"

namespace muster::handler::command {
namespace {

std::vector<std::pair<std::string, std::string>> EnvironmentFor(const CommandOptions& options) {
  if (options.inherits_environment) return options.env;
  std::vector<std::pair<std::string, std::string>> variables = {{"PATH", os::kUsualPath}};
  const auto pass = [&variables](const std::string& name) {
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no
                                                          // thread changes the environment
    if (value != nullptr) variables.emplace_back(name, value);
  };
  for (const char* name : kUsualVariables) pass(name);
  for (const std::string& name : options.passed_variables) pass(name);
  variables.insert(variables.end(), options.env.begin(), options.env.end());
  return variables;
}

}  // namespace

absl::StatusOr<os::ProcessSpec> ProgramOf(const CommandOptions& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("the command is empty");
  os::ProcessSpec program;
  program.argv = options.argv;
  program.env = EnvironmentFor(options);
  program.inherits_environment = options.inherits_environment;
  program.working_dir = options.working_dir;
  program.limits = options.limits;
  MUSTER_ASSIGN_OR_RETURN(program.path, os::FindProgram(options.argv[0], options.working_dir));
  MUSTER_RETURN_IF_ERROR(os::CheckProgram(program.path));
  MUSTER_RETURN_IF_ERROR(os::CheckScript(options.argv, options.working_dir));
  return program;
}

absl::StatusOr<StartedProgram> StartProgram(os::ProcessSpec program, os::Spawner* spawner) {
  StartedProgram started;
  if (!program.inherits_environment) {
    MUSTER_ASSIGN_OR_RETURN(started.scratch, os::ScratchFolder::Make());
    program.env.insert(program.env.begin(), {"TMPDIR", started.scratch->path()});
  }
  absl::StatusOr<std::unique_ptr<os::ChildProcess>> child = spawner->Start(program);
  if (!child.ok()) return os::ExplainStart(child.status(), program.path, program.working_dir);
  started.child = *std::move(child);
  return started;
}

}  // namespace muster::handler::command
