// What a listener is doing, as a message.
#pragma once

#include "absl/time/time.h"
#include "muster/v1/worker_service.pb.h"
#include "services/processor/job_listeners.h"

namespace muster::processor {

// Asks the store for the depth of each partition. `now` is when.
v1::ListenerState StateOf(const JobListener& served, absl::Time now);

}  // namespace muster::processor
