// muster version
#include <ostream>

#include "CLI/CLI.hpp"
#include "cli/output/environment.h"

namespace muster::cli {

void AddVersion(CLI::App* app, const Environment& environment) {
  app->add_subcommand("version", "Print the version")->callback([&environment] {
    *environment.out << "muster " MUSTER_VERSION "\n";
  });
}

}  // namespace muster::cli
