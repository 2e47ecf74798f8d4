// SPDX-License-Identifier: Apache-2.0

// The `muster` program as a library, for programs with their own handlers:
//
//   int main(int argc, char** argv) {
//     handler::HandlerRegistry handlers;
//     handlers.Register({"mine", "1", MakeMine});
//     return cli::Main(argc, argv, handlers);
//   }
#pragma once

#include "muster/handler/handler.h"

namespace muster::cli {

// Runs the command line and answers its exit code (ExitCode in cli/output/exit_code.h). A program
// that is called muster-initiator, muster-processor or muster-controller, by a link say, is that
// service instead: their code is in it for `muster up`. Call it from main, before any other thread
// starts.
int Main(int argc, char** argv, const handler::HandlerRegistry& handlers);

}  // namespace muster::cli
