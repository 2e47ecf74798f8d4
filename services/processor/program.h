// SPDX-License-Identifier: Apache-2.0

// The `muster-processor` program as a library, for programs with their own handlers:
//
//   int main(int argc, char** argv) {
//     handler::HandlerRegistry handlers;
//     handlers.Register({"mine", "1", MakeMine});
//     return processor::Main(argc, argv, handlers);
//   }
#pragma once

#include "muster/handler/handler.h"

namespace muster::processor {

// Works until SIGTERM or SIGINT, and answers its exit code (services/host/host.h). Call it from
// main, before any other thread starts.
int Main(int argc, char** argv, const handler::HandlerRegistry& handlers);

}  // namespace muster::processor
