// RunService: the main of every service.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "services/host/host_options.h"
#include "services/host/role.h"

namespace muster::host {

// What programs answer to supervisors; the same as of the `muster` command. SIGTERM and SIGINT that
// end in a drain are a success.
enum ServiceExit : int {
  kDone = 0,
  kFailed = 1,
  kMisused = 2,    // the command line or the environment is wrong
  kHurried = 130,  // a second signal, or somebody did not stop within the grace
};

// `clock` outlives the role.
using MakeRole = std::function<absl::StatusOr<std::unique_ptr<Role>>(const HostOptions& options,
                                                                     base::Clock* clock)>;

// Runs a role, as `program`, until SIGTERM or SIGINT, and drains it. A second signal, or somebody
// who does not stop within the grace, ends the process with kHurried. Call it before any other
// thread is started.
absl::Status RunRole(const std::string& program, const HostOptions& options,
                     const MakeRole& make_role);

struct ServiceProgram {
  RoleInfo role;
  std::string about;  // for --help
  // Adds the role's own options; may be empty.
  std::function<void(CLI::App*)> add_options = nullptr;
  MakeRole make_role = nullptr;  // called once the options are read
};

// Runs "muster-ROLE" until it is told to end, and answers its exit code. Call it from main, before
// any other thread is started.
int RunService(int argc, char** argv, const ServiceProgram& program);

}  // namespace muster::host
