// The line that a program writes: what became of one work item. docs/command_handlers.md is its
// contract, and whatever is not in it is refused.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/handler/handler.h"

namespace muster::handler::command {

// Reads an answer about `item` (`line` without its line feed) and puts its groups and rejections
// into `results`, where transactions that were never sent are rejected already. InvalidArgument
// naming the place in the answer that is wrong; `results` is then to be thrown away.
absl::StatusOr<handler::Outcome> DecodeAnswer(absl::string_view line,
                                              const handler::JobSchema& schema,
                                              const handler::WorkItem& item,
                                              handler::Results& results);

}  // namespace muster::handler::command
