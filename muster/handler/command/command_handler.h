// SPDX-License-Identifier: Apache-2.0

// A handler that is any program: started once per handler and kept, one line of JSON in and one out
// for each work item. docs/command_handlers.md tells authors of such programs how to write one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/handler/handler.h"
#include "muster/handler/health_troubles.h"
#include "muster/handler/restarts.h"
#include "muster/os/child_process.h"

namespace muster::handler::command {

// The variables of this process that each program gets: what programs need to run at all, and to
// write text and times. PATH is that of a shell where this process has none.
inline constexpr const char* kUsualVariables[] = {"PATH",   "HOME",     "LANG",
                                                  "LC_ALL", "LC_CTYPE", "TZ"};

struct CommandOptions {
  // The program and its arguments. A name without a slash is looked up in PATH, one with a slash is
  // relative to working_dir.
  std::vector<std::string> argv;
  // Where the program runs. Empty: where this process runs.
  std::string working_dir;
  // Set in the program's environment, on top of those that it always gets (kUsualVariables,
  // TMPDIR).
  std::vector<std::pair<std::string, std::string>> env;
  // Further variables of this process that the program gets, where they are set.
  std::vector<std::string> passed_variables;
  // The program is this process's own, and gets its whole environment and TMPDIR instead.
  bool inherits_environment = false;
  // From handing out an item to its answer. A program that starts has start_patience to take its
  // first item, or `deadline` where that is longer; from then on the item has its deadline. A start
  // that is held back (below) does not count; an item that would have to wait longer than this for
  // its start is deferred.
  absl::Duration deadline = absl::Seconds(30);
  absl::Duration start_patience = absl::Minutes(1);
  // A longer answer is refused: it would be held in memory, once per worker.
  size_t max_answer_bytes = size_t{16} << 20;
  // After the nth failure in a row the next item waits first_restart_delay × 2^(n−1), at most
  // max_restart_delay, so that a program that dies at once does not eat the machine. A start a
  // second does not, and an item of such a program gets its verdict after a few of them.
  absl::Duration first_restart_delay = absl::Milliseconds(100);
  absl::Duration max_restart_delay = absl::Seconds(1);
  // As max_restart_delay, after a program that could not be started, or took no item.
  absl::Duration max_start_delay = absl::Seconds(10);
  // How long a program may take to end after its stdin, or its own stdout, was closed.
  absl::Duration exit_grace = absl::Seconds(1);
  os::ProcessLimits limits;
  // An item during which a signal kills the program gets Dead instead of Retry. For items that have
  // killed a program before.
  bool death_is_proof = false;
  // Where the handlers note that their programs fail again and again, or that one works; null:
  // nowhere. Shared with its readers; the handlers may outlive them.
  std::shared_ptr<handler::HealthTroubles> health;
  // Where they note each program that another one has to follow; null: nowhere. Shared likewise.
  std::shared_ptr<handler::Restarts> restarts = nullptr;
  // Called with Unavailable, each time that a program is started in vain, once no program of this
  // handler has taken an item for program_patience, and none has ever worked as far as `health`
  // knows. Runs on a worker's thread. May be empty.
  std::function<void(const absl::Status&)> on_never_started = {};
  absl::Duration program_patience = absl::Seconds(5);
  base::Clock* clock = base::RealClock();  // not owned
};

// Each handler that the factory makes runs a program of its own. The factory returns NotFound when
// there is no such program, or no such script for it, PermissionDenied when it cannot be executed,
// and FailedPrecondition when its first line keeps it from starting (os/find_program.h). It starts
// no program: the first item does.
//
// Process gives Retry, with the reason, when a program has taken the item, by reading any of it,
// and crashes, hangs beyond the deadline, closes its pipes, or answers anything but what
// docs/command_handlers.md allows; the program's process group is killed then, and the next item
// starts it anew. It gives Defer when no program has taken the item: it cannot be started, has no
// folder for temporary files, or ended, wrote or hung before it read a byte. A program that ends
// with status 0 after an answer, and says nothing of the next item, is started anew for it. Each
// program has a folder of its own for temporary files (TMPDIR), which is removed after it. When the
// stop token is set the program is killed at once and the item released. What the program writes to
// stderr is logged. Of failures in a row of all programs of a factory, the log tells the
// first ones each, then some (failure_log.h).
handler::HandlerFactory CommandHandlerFactory(CommandOptions options);

}  // namespace muster::handler::command
