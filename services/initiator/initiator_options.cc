#include "services/initiator/initiator_options.h"

#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "services/host/host_options.h"

namespace muster::initiator {

void AddInitiatorOptions(CLI::App* app, RoleOptions* options) {
  const auto refuse = [](const std::string& text) -> std::string {
    double share = 0;
    // A number that is none is within no bounds.
    if (absl::SimpleAtod(text, &share) && share >= 0 && share <= 1) return "";
    return "'" + text + "' is no share within 0 to 1";
  };
  app->add_option("--trace-sample", options->trace_sample,
                  "Share of batches to trace of those whose submitter names no trace")
      ->envname(host::EnvironmentName("--trace-sample"))
      ->check(refuse)
      ->capture_default_str()
      ->type_name("SHARE");
}

}  // namespace muster::initiator
