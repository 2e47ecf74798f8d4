// SPDX-License-Identifier: Apache-2.0

// The program `muster-controller`.
#pragma once

namespace muster::controller {

// Serves until SIGTERM or SIGINT, and answers its exit code (services/host/host.h). Call it from
// main, before any other thread starts.
int Main(int argc, char** argv);

}  // namespace muster::controller
