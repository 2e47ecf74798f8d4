// SPDX-License-Identifier: Apache-2.0
#include "services/processor/program.h"

#include <iostream>
#include <memory>

#include "absl/strings/string_view.h"
#include "services/host/host.h"
#include "services/processor/job_handler.h"
#include "services/processor/processor_role.h"

namespace muster::processor {
namespace {

constexpr char kAbout[] =
    "muster-processor: works on the items of the jobs that a mesh has, with their handlers. Any\n"
    "number of them share the work.";

// The hidden command with which this program starts itself as the process for suspects.
int ServeHandlerMain(const handler::HandlerRegistry& handlers) {
  const absl::Status served = ServeHandler(handlers);
  if (served.ok()) return host::kDone;
  std::cerr << "muster-processor: " << served.message() << std::endl;
  return host::kFailed;
}

}  // namespace

int Main(int argc, char** argv, const handler::HandlerRegistry& handlers) {
  if (argc == 2 && absl::string_view(argv[1]) == kServeHandler) return ServeHandlerMain(handlers);
  ServiceOptions options;
  host::ServiceProgram program;
  program.role = host::kProcessor;
  program.about = kAbout;
  program.add_options = [&options](CLI::App* app) { AddProcessorOptions(app, &options); };
  program.make_role = [&](const host::HostOptions& host,
                          base::Clock* clock) -> absl::StatusOr<std::unique_ptr<host::Role>> {
    options.account = host.account;
    options.instance = host.instance;
    options.drain_grace = host.drain_grace;
    options.handlers.allow_plaintext = host.allow_plaintext;
    return std::make_unique<ProcessorRole>(&handlers, host, options, clock);
  };
  return host::RunService(argc, argv, program);
}

}  // namespace muster::processor
