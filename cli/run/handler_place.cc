// SPDX-License-Identifier: Apache-2.0
#include "cli/run/handler_place.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/yaml/yaml_value.h"

namespace muster::cli {

std::string HandlerPlace(const job::JobDefinition& job, const std::string& file) {
  if (const auto* const linked = std::get_if<job::LinkedHandlerSpec>(&job.handler)) {
    return absl::StrCat(file, ":", linked->line, ":", linked->column, ": handler.linked");
  }
  if (!std::holds_alternative<job::CommandHandlerSpec>(job.handler)) return file;
  const yaml::Place place = yaml::PlaceIn(job.text, {"handler", "command"});
  return absl::StrCat(file, ":", place.line, ":", place.column, ": handler.command");
}

absl::StatusOr<processor::JobHandler> FindHandlerOf(const job::JobDefinition& job,
                                                    const std::string& file,
                                                    const processor::HandlerAccess& access,
                                                    const Environment& environment) {
  auto handler = processor::FindHandler(job, *environment.handlers, access, environment.clock);
  if (!absl::IsNotFound(handler.status())) return handler;
  return base::Annotate(handler.status(), HandlerPlace(job, file));
}

}  // namespace muster::cli
