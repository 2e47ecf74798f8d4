// The `muster-processor` program as a library, so that anybody can build one with handlers of one's
// own:
//
//   int main(int argc, char** argv) {
//     handler::HandlerRegistry handlers;
//     handlers.Register({"mine", "1", MakeMine});
//     return processor::Main(argc, argv, handlers);
//   }
#pragma once

#include "muster/handler/handler.h"

namespace muster::processor {

// Works until it is told to end, and answers its exit code (services/host/host.h). Call it
// from main, before any other thread is started.
int Main(int argc, char** argv, const handler::HandlerRegistry& handlers);

}  // namespace muster::processor
