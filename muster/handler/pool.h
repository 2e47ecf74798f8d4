// SPDX-License-Identifier: Apache-2.0

// PooledHandlers: handlers that outlive their workers.
#pragma once

#include "muster/handler/handler.h"

namespace muster::handler {

// A factory that lends handlers: the one that a worker gave back last (by destroying it), or else a
// new one from `make`. Workers come and go with the load; a handler that is expensive to make (a
// command handler has a program) can stay. The pool keeps at most as many as were lent at the same
// time.
//
// Thread-safe if `make` is. A handler is lent to one worker at a time, but its workers have
// different threads. All calls must be for the same job. Once the factory, its copies and all that
// it lent are gone, the handlers are destroyed side by side, each on a thread of its own, since to
// end a program takes a while.
HandlerFactory PooledHandlers(HandlerFactory make);

}  // namespace muster::handler
