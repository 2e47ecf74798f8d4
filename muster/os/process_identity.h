// ProcessIdentity: one process, and never another one that was given its number later.
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
  std::string boot;          // which run of the machine

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// The process that has this number now; nullopt: there is none, or it has ended and was not waited
// for.
std::optional<ProcessIdentity> IdentityOf(pid_t pid);

// What each run of the machine has its own of.
std::string BootId();

// Whether it runs, and has `argument` on its command line: processes of another container have
// numbers of their own.
bool IsAlive(const ProcessIdentity& process, absl::string_view argument);

// False: it has ended.
bool SendSignal(const ProcessIdentity& process, int signal_number);

}  // namespace muster::os
