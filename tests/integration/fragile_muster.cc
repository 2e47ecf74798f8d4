// A muster whose linked handler is fragile.
#include "cli/main.h"
#include "muster/handler/handler.h"
#include "tests/integration/fragile_handler.h"

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  RegisterFragile(handlers);
  return muster::cli::Main(argc, argv, handlers);
}
