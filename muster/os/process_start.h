// SPDX-License-Identifier: Apache-2.0

// PrepareProcess: what each program of muster does first; and HasInput.
#pragma once

namespace muster::os {

// Call it from main, before any other thread starts, and before a file is opened. Opens the
// standard descriptors that are closed: the next files and sockets would have their numbers, and
// log lines would go into them. Does RunAsInit. Ignores SIGPIPE, by which a peer or reader that
// hangs up would end the process, and SIGXFSZ: a file that may not grow is an error of its writer,
// as a full disk. Programs that a ChildProcess starts have the usual signals.
void PrepareProcess();

// Whether the program was started with a standard input. Where it was not, descriptor 0 is no
// input: it is what PrepareProcess has opened, or what a library has before main, as an eventfd.
bool HasInput();

}  // namespace muster::os
