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
    // Not for writing: what goes to a closed output is lost, and not unsaid.
    opened = open("/dev/null", O_RDONLY);
  } while (0 <= opened && opened <= STDERR_FILENO);
  if (opened > STDERR_FILENO) close(opened);
  RunAsInit();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace muster::os
