// SPDX-License-Identifier: Apache-2.0

// The muster-processor of the next release: its linked retail handler has another version, so it
// does not fit batches of this release.
#include <utility>

#include "examples/retail/handler.h"
#include "muster/handler/handler.h"
#include "services/processor/program.h"

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  retail::RegisterRetail(handlers);
  muster::handler::LinkedHandler next = **handlers.Find("retail");
  next.version = "2";
  handlers.Register(std::move(next));
  return muster::processor::Main(argc, argv, handlers);
}
