// Redriving work items: back from the poison queue into their input queue, with their batches open
// again so that they count.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/queue/queue_store.h"

namespace muster::cli {

struct RedriveRequest {
  std::string data_dir;
  queue::QueueId queue;
  std::vector<std::string> messages;  // ids; empty: the oldest `max`
  int64_t max = INT64_MAX;
};

struct RedriveSummary {
  int64_t messages = 0;
  std::set<uint64_t> batches;  // open again
};

// FailedPrecondition while a run holds the data directory. An interruption at any point leaves
// items that are either still poison or put again by the next run; none is lost, none counts twice.
absl::StatusOr<RedriveSummary> RedriveItems(const RedriveRequest& request, base::Clock* clock);

}  // namespace muster::cli
