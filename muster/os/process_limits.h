// SPDX-License-Identifier: Apache-2.0

// What the operating system grants this process: descriptors, threads and memory.
#pragma once

#include <cstdint>
#include <string>

namespace muster::os {

// Raises the soft limit of open descriptors to the hard one, but to no more than `enough`: programs
// that this process starts inherit it, and some of them visit every number up to it. A limit that
// is higher already stays. Answers the limit that is in force.
int64_t RaiseDescriptorLimit(int64_t enough);

// The soft limit of open descriptors now.
int64_t DescriptorLimit();

// What may help a process that gets no thread.
inline constexpr char kRaiseThreadLimits[] =
    "raise its limits of threads and memory (ulimit -u and -v, TasksMax, pids.max)";

// From now on, a process that cannot start a thread (std::system_error) or has no memory left
// (std::bad_alloc), and does not handle that, says so in one line on stderr, "PROGRAM: …", and ends
// with `exit_code`. Without this it dies of SIGABRT and dumps core. What was acknowledged is on
// disk, so a supervisor may start the process again. Other uncaught exceptions still abort. Call it
// from main, before any other thread starts.
void ExitWhenExhausted(const std::string& program, int exit_code);
// Ends so if `count` threads cannot run side by side now, for a library that does not say so, or
// hangs, when it gets none. Returns if they can, and if ExitWhenExhausted was not called.
void ExitUnlessThreadsStart(int count);
// Ends so at once, for code that a library calls before it aborts because it could start no thread.
// Returns if ExitWhenExhausted was not called.
void ExitForWantOfThreads();

}  // namespace muster::os
