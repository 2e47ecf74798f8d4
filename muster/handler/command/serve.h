// SPDX-License-Identifier: Apache-2.0

// Serve: the program's side of a conversation, for a handler that is linked into this program. It
// lets a handler in C++ run in a process of its own by the same contract as any other program.
#pragma once

#include <cstdio>

#include "absl/status/status.h"
#include "muster/handler/handler.h"

namespace muster::handler::command {

// Answers each request on `in` with a line on `out`, until `in` ends. InvalidArgument: a line that
// is no request of this contract's version about `schema`; Unavailable: `out` was closed. None of
// the arguments is owned.
absl::Status Serve(handler::Handler& handler, const handler::JobSchema& schema, std::FILE* in,
                   std::FILE* out);

}  // namespace muster::handler::command
