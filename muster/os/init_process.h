// SPDX-License-Identifier: Apache-2.0

// RunAsInit: what process 1 of a container owes to the processes that become its children.
#pragma once

namespace muster::os {

// In process 1 of a PID namespace, as of a container without an init of its own: goes on in a child
// process, and never returns in this one, which passes signals on to the child, reaps every process
// that loses its parent, and ends as the child does (128 + signal where a signal has ended it). A
// helper that a handler's program leaves behind would stay a zombie otherwise, each with a place in
// the process table. In any other process it does nothing. Call it from main, before any other
// thread starts. Where no process can be forked, this one goes on alone.
void RunAsInit();

}  // namespace muster::os
