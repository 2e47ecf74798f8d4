// SPDX-License-Identifier: Apache-2.0

// A muster-processor whose linked handlers are fragile, or write down their calls.
#include "muster/handler/handler.h"
#include "services/processor/program.h"
#include "tests/integration/fragile_handler.h"
#include "tests/integration/witness_handler.h"

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  RegisterFragile(handlers);
  RegisterWitness(handlers);
  return muster::processor::Main(argc, argv, handlers);
}
