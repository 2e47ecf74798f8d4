// LostItemDetector: finds the items of a sealed batch that are in no queue and were not counted
// either. A queue may lose what it acknowledged; the ledger does not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/job/job.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"

namespace muster::initiator::batch {

// Thread-compatible.
class LostItemDetector {
 public:
  // Neither store is owned.
  LostItemDetector(const job::JobDefinition& job, const std::string& account,
                   queue::QueueStore* queues, report::ReportClient* report_client);

  // Whether the job's queues are empty. Only then are all uncounted items certainly lost.
  absl::StatusOr<bool> QueuesHoldNothing();

  // Indexes of a batch of `item_count` items that have no row in the report, in order.
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count);

 private:
  const std::vector<queue::QueueId> inputs_;
  const queue::QueueId output_;
  queue::QueueStore* const queues_;            // not owned
  report::ReportClient* const report_client_;  // not owned
};

}  // namespace muster::initiator::batch
