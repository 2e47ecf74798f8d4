// SPDX-License-Identifier: Apache-2.0

// The physical queues of a job's logical queues.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"

namespace muster::item {

// "retail-in": the name for all input partitions of a job together.
std::string InputName(absl::string_view job);
// "retail-in-0": work items of partition 0. Names are safe also where the job's name is not.
queue::QueueId InputQueue(absl::string_view account, absl::string_view job, int partition);
// "retail-out-0": their results.
queue::QueueId OutputQueue(absl::string_view account, absl::string_view job, int partition);

// All input partitions, in order.
std::vector<queue::QueueId> InputQueues(absl::string_view account, absl::string_view job,
                                        int partitions);

// What the names of all groups begin with whose members share the input partitions of the job, by
// order of its keys: "order/retail-in-0/", before the number of partitions.
std::string OrderGroupPrefix(absl::string_view account, absl::string_view job);

enum class Direction { kInput, kOutput };

// The side of a job that the queue of this name is on. The last "-in-N" or "-out-N" decides: the
// job may be called "check-out-retail". nullopt: no job's queue, or its name was cut for length.
std::optional<Direction> DirectionOf(absl::string_view queue_name);

// "retail-in" for "retail-in-3": what the partitions of a logical queue have in common, by which
// metrics name it. A name that is not a job's queue, or was cut for length, stays as it is.
std::string LogicalName(absl::string_view queue_name);
// That of the job's input queues.
std::string LogicalInput(absl::string_view job);

// The account of a data directory that belongs to one user.
inline constexpr char kLocalAccount[] = "local";

}  // namespace muster::item
