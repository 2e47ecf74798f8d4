// The line that a program reads: one work item. docs/command_handlers.md is its contract.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "muster/handler/results.h"
#include "muster/handler/schema.h"
#include "muster/handler/work_item.h"

namespace muster::handler::command {

// Version of the lines in both directions; it grows when a program written for the old ones would
// misunderstand the new.
inline constexpr int kProtocolVersion = 1;

// One line of JSON, its line feed included. A transaction with a field that is not UTF-8 cannot be
// told in JSON: it is rejected in `results` and left out.
std::string EncodeRequest(const handler::JobSchema& schema, const handler::WorkItem& item,
                          absl::Duration deadline, handler::Results& results);

}  // namespace muster::handler::command
