#include "cli/run/linked_handler.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::cli {

absl::StatusOr<processor::JobHandler> FindHandlerOf(const job::JobDefinition& job,
                                                    const std::string& file,
                                                    const processor::HandlerAccess& access,
                                                    const Environment& environment) {
  auto handler = processor::FindHandler(job, *environment.handlers, access, environment.clock);
  const auto* const linked = std::get_if<job::LinkedHandlerSpec>(&job.handler);
  if (!absl::IsNotFound(handler.status()) || linked == nullptr) return handler;
  return base::Annotate(handler.status(), absl::StrCat(file, ":", linked->line, ":", linked->column,
                                                       ": handler.linked"));
}

}  // namespace muster::cli
