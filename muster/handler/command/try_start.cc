// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/try_start.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/handler/command/conversation.h"
#include "muster/handler/command/program.h"
#include "muster/os/child_process.h"

namespace muster::handler::command {
namespace {

constexpr int kTickMs = 20;
constexpr absl::Duration kExitGrace = absl::Seconds(1);

// Whether the program's first thread waits in a read of its stdin, as far as the kernel tells.
bool IsReadingStdin(pid_t program) {
  std::ifstream file(absl::StrCat("/proc/", program, "/syscall"));
  int64_t number = -1;
  std::string first_argument;
  file >> number >> first_argument;
  return number == SYS_read && first_argument == "0x0";
}

// Waits for any sign of what the program does; returns what it does wrong, which completes "the
// handler's program …", empty: nothing.
std::string Watch(os::ChildProcess& child, Conversation& conversation) {
  const absl::Duration until = base::RealClock()->Monotonic() + kTryStartFor;
  while (base::RealClock()->Monotonic() < until) {
    std::array<pollfd, 2> events{{{child.ended_fd(), POLLIN, 0}, {child.output(), POLLIN, 0}}};
    poll(events.data(), events.size(), kTickMs);
    conversation.DrainErrors();
    const bool is_ready = conversation.IsReady();
    if (!conversation.answer().empty()) {
      return "wrote to stdout before it was given an item; only answers may go there, and all else "
             "to stderr";
    }
    if (!is_ready && child.HasEnded())
      return absl::StrCat(child.Kill(), ", before it was given an item");
    if (IsReadingStdin(child.pid())) break;
  }
  return "";
}

}  // namespace

absl::Status TryStart(const CommandOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const os::ProcessSpec program, ProgramOf(options));
  os::Spawner spawner;
  StderrLog errors(options.clock);
  MUSTER_ASSIGN_OR_RETURN(StartedProgram started, StartProgram(program, &spawner));
  os::ChildProcess& child = *started.child;
  Conversation conversation(&child, &errors, nullptr, options.clock,
                            {options.max_answer_bytes, kExitGrace});
  std::string wrong = Watch(child, conversation);
  child.AskToEnd(kExitGrace, [&conversation] { conversation.DrainErrors(); });
  child.Kill();
  conversation.DrainErrors();
  errors.EndLine();
  if (wrong.empty()) return absl::OkStatus();
  if (const std::string last = errors.LastLines(); !last.empty()) {
    absl::StrAppend(&wrong, "; stderr: ", last);
  }
  return absl::FailedPreconditionError(absl::StrCat("the handler's program ", wrong));
}

}  // namespace muster::handler::command
