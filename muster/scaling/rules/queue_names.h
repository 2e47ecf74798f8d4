// What rules mean by the name of a queue.
#pragma once

#include "absl/strings/string_view.h"

namespace muster::scaling::rules {

// Whether `queue` is the queue of this name, or one of its partitions: "retail-in-0" and
// "retail-in-12" are what "retail-in" means. Names that no queue can have mean those that are made
// of them: "my_job-in" means the queue that muster made for "my_job-in-0".
bool MatchesQueue(absl::string_view name, absl::string_view queue);

}  // namespace muster::scaling::rules
