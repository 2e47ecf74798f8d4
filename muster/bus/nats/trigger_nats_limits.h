// The bounds of the NATS bus, each with its reason.
#pragma once

#include "absl/time/time.h"

namespace muster::bus::nats {

// A publisher waits at most this long for the server to confirm. A trigger that is later than this
// has hardly a use: the safety check of the listeners is on its way.
inline constexpr absl::Duration kTriggerPublishTimeout = absl::Seconds(1);

}  // namespace muster::bus::nats
