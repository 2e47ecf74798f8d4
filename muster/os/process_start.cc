// SPDX-License-Identifier: Apache-2.0
#include "muster/os/process_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "muster/os/init_process.h"

namespace muster::os {

void PrepareProcess() {
  int opened = 0;
  do {
    // An output not for writing: what goes to a closed one is lost, and not unsaid. The input not
    // for reading: a closed one is not an empty one.
    const bool is_input = fcntl(STDIN_FILENO, F_GETFD) < 0;
    opened = open("/dev/null", is_input ? O_WRONLY : O_RDONLY);
  } while (0 <= opened && opened <= STDERR_FILENO);
  if (opened > STDERR_FILENO) close(opened);
  RunAsInit();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool HasInput() {
  // A descriptor that was handed on to a program is not closed when programs begin.
  const int flags = fcntl(STDIN_FILENO, F_GETFD);
  if (flags < 0 || (flags & FD_CLOEXEC) != 0) return false;
  return (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) != O_WRONLY;
}

}  // namespace muster::os
