#include "services/initiator/batch/lost_item_detector.h"

#include "muster/base/status.h"
#include "muster/item/queue_names.h"

namespace muster::initiator::batch {

LostItemDetector::LostItemDetector(const job::JobDefinition& job, const std::string& account,
                                   queue::QueueStore* queues, report::ReportClient* report_client)
    : inputs_(item::InputQueues(account, job.name, job.queue.partitions)),
      output_(item::OutputQueue(account, job.name, 0)),
      queues_(queues),
      report_client_(report_client) {}

absl::StatusOr<bool> LostItemDetector::QueuesHoldNothing() {
  // Input first: a result is in the output queue before its item leaves the input queue, so nothing
  // can slip through between the two looks.
  for (const queue::QueueId& input : inputs_) {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, queues_->Stats(input));
    if (stats.stored() > 0) return false;
  }
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, queues_->Stats(output_));
  return stats.stored() == 0;
}

absl::StatusOr<std::vector<uint64_t>> LostItemDetector::UncountedItems(uint64_t batch,
                                                                       uint64_t item_count) {
  std::vector<uint64_t> uncounted;
  for (uint64_t from = 0;; from = uncounted.back() + 1) {
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<uint64_t> page,
        report_client_->UncountedItems(batch, item_count, from, report::kMaxReportItems));
    uncounted.insert(uncounted.end(), page.begin(), page.end());
    if (page.size() < report::kMaxReportItems) return uncounted;
  }
}

}  // namespace muster::initiator::batch
