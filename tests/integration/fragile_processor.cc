// A muster-processor whose linked handler is fragile.
#include "muster/handler/handler.h"
#include "services/processor/program.h"
#include "tests/integration/fragile_handler.h"

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  RegisterFragile(handlers);
  return muster::processor::Main(argc, argv, handlers);
}
