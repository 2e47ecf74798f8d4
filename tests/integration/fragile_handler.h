// The fragile handler of these tests: it does what a line of its input says. "abort" kills the
// process, "throw" throws, "retry" wants another attempt after its first, "dead" gives its item up
// unless the environment says FRAGILE_MENDED; anything else counts, by its first bytes.
#pragma once

#include "muster/handler/handler.h"

// Adds the handler "fragile"; the environment's FRAGILE_VERSION is its version, 1 without it.
void RegisterFragile(muster::handler::HandlerRegistry& handlers);
