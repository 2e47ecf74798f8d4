// SPDX-License-Identifier: Apache-2.0

// The stock `muster`: everything, with the handlers of the examples.
#include "cli/main.h"

#include "examples/retail/handler.h"
#include "muster/handler/handler.h"

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  retail::RegisterRetail(handlers);
  return muster::cli::Main(argc, argv, handlers);
}
