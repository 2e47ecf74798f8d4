#include "services/processor/processor_options.h"

#include <algorithm>
#include <thread>

#include "CLI/CLI.hpp"
#include "services/host/host_options.h"
#include "services/processor/limits.h"

namespace muster::processor {

void AddProcessorOptions(CLI::App* app, ServiceOptions* options) {
  options->threads = static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(kMaxThreads)));
  app->add_option("--job", options->jobs, "Work for this job only; may be given more than once")
      ->envname(host::EnvironmentName("--job"))
      ->delimiter(',');
  app->add_option("--threads", options->threads, "Workers of each job, at most")
      ->envname(host::EnvironmentName("--threads"))
      ->check(CLI::Range(1, kMaxThreads))
      ->capture_default_str();
}

}  // namespace muster::processor
