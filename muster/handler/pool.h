// PooledHandlers: handlers that outlive their workers.
#pragma once

#include "muster/handler/handler.h"

namespace muster::handler {

// A factory that lends handlers: one that an earlier worker gave back by destroying it, the last
// first, or else one that `make` makes. Workers come and go with the load; a handler that is dear
// to make (a command handler has a program) need not go with them. At most as many are kept as were
// lent at the same time.
//
// Thread-safe if `make` is. A handler is lent to one worker at a time, but its workers have
// different threads. All calls must be for the same job. Once the factory, its copies and all that
// it lent are gone, the handlers are destroyed side by side, each on a thread of its own, since to
// end a program takes a while.
HandlerFactory PooledHandlers(HandlerFactory make);

}  // namespace muster::handler
