// SPDX-License-Identifier: Apache-2.0

// HandlerPrograms: which programs the jobs of a processor may run as their handlers. Clients that
// may apply jobs choose the `command`; the operator of the processor chooses this list.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/job/job.h"

namespace muster::processor {

// The entry of a list that allows every program.
inline constexpr char kAnyProgram[] = "any";

// A list of entries, each of them
//
//   any                  every program, with every argument and variable
//   /srv/billing         a folder: every program and script below it
//   /srv/*/bin/bill      a program or script; "*" and "?" stand for characters of one name
//
// A command is allowed when its program is, or when the program is an interpreter out of PATH
// (python3, bash, node …) and its first argument is a script that is allowed. Paths are compared
// after links are followed. Immutable.
class HandlerPrograms {
 public:
  // Allows every program: for a user who runs a job file of their own.
  HandlerPrograms() : entries_(1, kAnyProgram) {}
  // No entries: allows none.
  explicit HandlerPrograms(std::vector<std::string> entries) : entries_(std::move(entries)) {}

  // Relative paths lead from the folder that this process runs in.
  static HandlerPrograms Of(const std::vector<std::string>& texts);

  // PermissionDenied naming what is not allowed and how to allow it. NotFound, PermissionDenied as
  // os::FindProgram and os::CheckScript. A variable that makes a program load other code
  // (LD_PRELOAD, BASH_ENV, PYTHONPATH, PATH …) is not allowed unless every program is.
  absl::Status Check(const job::CommandHandlerSpec& command, const std::string& working_dir) const;

  const std::vector<std::string>& entries() const { return entries_; }

 private:
  bool Allows(const std::string& path) const;
  bool AllowsAny() const;

  std::vector<std::string> entries_;
};

// What a processor allows that was told nothing: on loopback the programs of the folder that it
// runs in, where the relative paths of jobs lead; none where others can reach it, and none where
// that folder is the root of all others.
HandlerPrograms UsualPrograms(bool is_on_loopback);

}  // namespace muster::processor
