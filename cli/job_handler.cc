#include "cli/job_handler.h"

#include <variant>

#include "muster/base/status_macros.h"
#include "muster/handler_command/command_handler.h"

namespace muster::cli {

absl::StatusOr<JobHandler> FindHandler(const job::JobDefinition& job,
                                       const handler::HandlerRegistry& handlers,
                                       base::Clock* clock) {
  if (const auto* linked = std::get_if<job::LinkedHandlerSpec>(&job.handler)) {
    MUSTER_ASSIGN_OR_RETURN(const handler::LinkedHandler* handler, handlers.Find(linked->name));
    return JobHandler{handler->factory, handler->version};
  }
  const auto& command = std::get<job::CommandHandlerSpec>(job.handler);
  handler_command::CommandOptions options;
  options.argv = command.argv;
  options.working_dir = job.folder;
  options.env = command.env;
  options.deadline = command.deadline;
  options.clock = clock;
  return JobHandler{handler_command::CommandHandlerFactory(options), command.version};
}

}  // namespace muster::cli
