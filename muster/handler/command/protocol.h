// SPDX-License-Identifier: Apache-2.0

// The lines between muster and a handler program, in both directions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/handler/handler.h"
#include "muster/handler/results.h"
#include "muster/handler/work_item.h"

namespace muster::handler::command {

// The line that a program reads: one work item. docs/command_handlers.md is its contract.

// Version of the lines in both directions; it grows when a program written for the old ones would
// misunderstand the new.
inline constexpr int kProtocolVersion = 1;

// One line of JSON, its line feed included. JSON cannot hold a field that is not UTF-8: a
// transaction with one is rejected in `results` and left out.
std::string EncodeRequest(const handler::JobSchema& schema, const handler::WorkItem& item,
                          absl::Duration deadline, handler::Results& results);

// The line that a program writes: the outcome of one work item. docs/command_handlers.md is its
// contract; everything that the contract does not allow is refused.

// Reads an answer about `item` (`line` without its line feed) and puts its groups and rejections
// into `results`, where the transactions that were not sent are rejected already. InvalidArgument
// naming the wrong place in the answer, OutOfRange naming the place of a value that the job's
// measures or outputs cannot hold (text that is no number, too many decimals, a sum that is too
// large); the caller must then discard `results`.
absl::StatusOr<handler::Outcome> DecodeAnswer(absl::string_view line,
                                              const handler::JobSchema& schema,
                                              const handler::WorkItem& item,
                                              handler::Results& results);

}  // namespace muster::handler::command
