#include "services/host/run_service.h"

#include <csignal>
#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/os/stop_signals.h"
#include "services/host/host.h"
#include "services/host/limits.h"

namespace muster::host {
namespace {

os::StopOptions OnStop(const std::string& name, const HostOptions& options) {
  return {.grace = options.drain_grace + kExitSlack,
          .exit_code = kHurried,
          .when_late = absl::StrCat(name, ": a handler does not stop; leaving it behind"),
          .when_hurried = absl::StrCat(name, ": stopped at once; others go on with what it had")};
}

}  // namespace

absl::Status RunRole(const std::string& program, const HostOptions& options,
                     const MakeRole& make_role) {
  const os::StopSignals signals(OnStop(program, options));
  base::Clock* const clock = base::RealClock();
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Role> role, make_role(options, clock));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Host> host,
                          Host::Start(options, role.get(), clock));
  return host->Serve(signals.token());
}

int RunService(int argc, char** argv, const ServiceProgram& program) {
  // A peer that hangs up is no reason to die.
  std::signal(SIGPIPE, SIG_IGN);
  const std::string name = absl::StrCat("muster-", program.role.name);
  HostOptions options(program.role);
  CLI::App app(program.about, name);
  app.footer(
      "Each option is also an environment variable: MUSTER_ and its name in capitals.\n"
      "Exit codes: 0 ended by SIGTERM or SIGINT, 1 error, 2 usage, 130 ended at once");
  app.set_version_flag("--version", MUSTER_VERSION);
  AddHostOptions(&app, &options);
  if (program.add_options) program.add_options(&app);
  try {
    app.parse(argc, argv);
    TakeRefusedVariables(&app);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? kDone : kMisused;
  }
  const absl::Status served = RunRole(name, options, program.make_role);
  if (served.ok()) return kDone;
  std::cerr << name << ": " << served.message() << std::endl;
  return kFailed;
}

}  // namespace muster::host
