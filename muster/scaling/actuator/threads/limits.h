// The bounds of the threads actuator, each with its reason.
#pragma once

#include "absl/time/time.h"

namespace muster::scaling::actuator::threads {

// What a processor may take to answer a call. It answers from memory, save for the depths of its
// queues, and an agent looks each second.
inline constexpr absl::Duration kCallLimit = absl::Seconds(5);

// How long a processor's state is believed that this actuator knows or has changed itself: asking
// costs the queue store a call for each partition, and only people change it behind the agent's
// back.
inline constexpr absl::Duration kBelievedFor = absl::Seconds(30);

}  // namespace muster::scaling::actuator::threads
