// SPDX-License-Identifier: Apache-2.0

// PrepareProcess: what each program of muster does first.
#pragma once

namespace muster::os {

// Call it from main, before any other thread starts, and before a file is opened. Opens the
// standard descriptors that are closed: the next files and sockets would have their numbers, and
// log lines would go into them. Does RunAsInit. Ignores SIGPIPE, by which a peer or reader that
// hangs up would end the process, and SIGXFSZ: a file that may not grow is an error of its writer,
// as a full disk. Programs that a ChildProcess starts have the usual signals.
void PrepareProcess();

}  // namespace muster::os
