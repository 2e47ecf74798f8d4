// SPDX-License-Identifier: Apache-2.0

// ProcessIdentity: identifies one process, even after its pid was given to another one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::os {

struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since the machine started, as in /proc/PID/stat
  std::string boot;          // the BootId() of the machine's run

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// The process that has this pid now; nullopt: there is none, or it has ended and is a zombie.
std::optional<ProcessIdentity> IdentityOf(pid_t pid);

// A descriptor of the process that has this pid now, closed on exec; below 0: none can be had.
int OpenPidfd(pid_t pid);

// The same for all processes of one run of the machine, different for each run.
std::string BootId();

// Whether the process runs, and has `argument` on its command line: the second check is needed
// because processes of another container have pids of their own. A process that has no command line
// yet, since it is loading its program, counts as the one that is meant.
bool IsAlive(const ProcessIdentity& process, absl::string_view argument);

// False: the process has ended.
bool SendSignal(const ProcessIdentity& process, int signal_number);

}  // namespace muster::os
