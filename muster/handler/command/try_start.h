// SPDX-License-Identifier: Apache-2.0

// TryStart: starts a handler's program as its first item would, and ends it again.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/handler/command/command_handler.h"

namespace muster::handler::command {

// A program that runs for so long without an item waits for one.
inline constexpr absl::Duration kTryStartFor = absl::Seconds(3);

// Gives the program no item: waits until it reads its stdin, at most kTryStartFor (real time), then
// closes that and ends it. FailedPrecondition, with its last words, when it cannot be started, ends
// before it was given an item, or writes to its stdout. OK does not say that it can work on items.
// Other errors are those of CommandHandlerFactory.
absl::Status TryStart(const CommandOptions& options);

}  // namespace muster::handler::command
