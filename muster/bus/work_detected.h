// How to say "work was put into this queue" and how to hear it (req. 42–45). Account and queue come
// as texts, because a bus knows nothing of the queues themselves.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "muster/bus/trigger_bus.h"

namespace muster::bus {

// The event that role instance `from` publishes after it put `messages` messages into `queue`.
InterRoleCommunicationEvent WorkDetected(absl::string_view from, absl::string_view account,
                                         absl::string_view queue, int64_t messages);

// Whether `event` says that there is work in `account`'s `queue`. Listeners ignore all others (43).
bool IsFor(const InterRoleCommunicationEvent& event, absl::string_view account,
           absl::string_view queue);

}  // namespace muster::bus
