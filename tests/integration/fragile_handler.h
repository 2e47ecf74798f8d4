// SPDX-License-Identifier: Apache-2.0

// The fragile handler of these tests follows the lines of its input. "abort" kills the process,
// "throw" throws, "retry" asks for a second attempt at its first, and "dead" gives its item up
// unless the environment has FRAGILE_MENDED. Any other line counts by its first bytes.
#pragma once

#include "muster/handler/handler.h"

// Registers the handler "fragile". The environment's FRAGILE_VERSION is its version; the default is
// 1.
void RegisterFragile(muster::handler::HandlerRegistry& handlers);
