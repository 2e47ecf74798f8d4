// The stock `muster-processor`, with the handlers of the examples.
#include "examples/retail/handler.h"
#include "muster/handler/handler.h"
#include "services/processor/program.h"

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  retail::RegisterRetail(handlers);
  return muster::processor::Main(argc, argv, handlers);
}
