// Which physical queues a job's logical queues are.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"

namespace muster::wire {

// "retail-in-0": work items of partition 0. Names are safe whatever the job is called.
queue::QueueId InputQueue(absl::string_view account, absl::string_view job, int partition);
// "retail-out-0": their results.
queue::QueueId OutputQueue(absl::string_view account, absl::string_view job, int partition);

// All input partitions, in order.
std::vector<queue::QueueId> InputQueues(absl::string_view account, absl::string_view job,
                                        int partitions);

// The account of a data directory that belongs to one user.
inline constexpr char kLocalAccount[] = "local";

}  // namespace muster::wire
