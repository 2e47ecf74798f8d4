// Calls a handler as if it kept its promise not to throw.
#pragma once

#include "muster/handler/handler.h"

namespace muster::handler {

// What Process answers; Retry with the exception's text when it throws, or when it says Ok but its
// verdicts do not work out (Results::Verdict), or gives no outcome at all.
Outcome ProcessGuarded(Handler& handler, const WorkItem& item, Results& results);

}  // namespace muster::handler
