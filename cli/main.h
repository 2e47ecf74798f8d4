// The `muster` program as a library, so that anybody can build one with handlers of one's own:
//
//   int main(int argc, char** argv) {
//     handler::HandlerRegistry handlers;
//     handlers.Register({"mine", "1", MakeMine});
//     return cli::Main(argc, argv, handlers);
//   }
#pragma once

#include "muster/handler/handler.h"

namespace muster::cli {

// Runs the command line and answers its exit code (exit_code.h). Call it from main, before any
// other thread is started.
int Main(int argc, char** argv, const handler::HandlerRegistry& handlers);

}  // namespace muster::cli
