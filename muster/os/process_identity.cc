// SPDX-License-Identifier: Apache-2.0
#include "muster/os/process_identity.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/os/file_descriptor.h"

namespace muster::os {
namespace {

// Of a process that ends between the opening and the reading, the system reads an error: nothing is
// there then. (A stream's iterators would throw.)
std::string ReadProc(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

int SignalProcess(int pidfd, pid_t pid, int signal_number) {
#ifdef SYS_pidfd_send_signal
  if (pidfd >= 0) {
    return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal_number, nullptr, 0));
  }
#endif
  return kill(pid, signal_number);
}

}  // namespace

int OpenPidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // close-on-exec by itself
#else
  return -1;
#endif
}

std::optional<ProcessIdentity> IdentityOf(pid_t pid) {
  const std::string stat = ReadProc(absl::StrCat("/proc/", pid, "/stat"));
  // The program's name comes first, in parentheses, and may hold anything.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kState = 0, kStartTicks = 19;
  ProcessIdentity process{pid, 0, BootId()};
  if (fields.size() <= kStartTicks || fields[kState] == "Z" || fields[kState] == "X" ||
      !absl::SimpleAtoi(fields[kStartTicks], &process.start_ticks)) {
    return std::nullopt;
  }
  return process;
}

std::string BootId() {
  return std::string(absl::StripAsciiWhitespace(ReadProc("/proc/sys/kernel/random/boot_id")));
}

// The command line is empty for a moment while the process loads its program, as just after its
// start, and while it ends.
bool IsAlive(const ProcessIdentity& process, absl::string_view argument) {
  if (process.pid <= 0 || IdentityOf(process.pid) != process) return false;
  const std::string command_line = ReadProc(absl::StrCat("/proc/", process.pid, "/cmdline"));
  if (command_line.empty()) return IdentityOf(process.pid) == process;
  for (const absl::string_view given : absl::StrSplit(command_line, '\0')) {
    if (given == argument) return true;
  }
  return false;
}

// Opens the descriptor first: the check of the pid that follows is then true of the descriptor's
// process, or that process has ended, and the signal reaches none.
bool SendSignal(const ProcessIdentity& process, int signal_number) {
  const FileDescriptor pidfd(OpenPidfd(process.pid));
  if (IdentityOf(process.pid) != process) return false;
  return SignalProcess(pidfd.get(), process.pid, signal_number) == 0;
}

}  // namespace muster::os
