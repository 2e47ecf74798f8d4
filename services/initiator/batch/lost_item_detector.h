// LostItemDetector: finds the items of a sealed batch that are in no queue and were not counted
// either. A queue may lose what it acknowledged; the ledger does not.
//
// It asks no message. The ledger has a mark for each partition of the input queue: how far the
// batch reaches into it. A partition is passed when its queue holds nothing up to the mark; what
// other batches have put since is beyond it. A result is in the output queue before its item leaves
// the input queue, so the end of the output queue is then a mark for the batch's results. Once that
// is passed, too, an item of the partition without a row in the report is lost:
//
//   input passes the put mark ─► output passes its end of that moment ─► no row: lost
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"

namespace muster::initiator::batch {

// Of one batch. Thread-compatible.
class LostItemDetector {
 public:
  // Neither store is owned.
  LostItemDetector(const job::JobDefinition& job, const std::string& account,
                   queue::QueueStore* queues, report::ReportClient* report_client);

  // Marks that hold for any batch with all its puts made: the present ends of the input queue's
  // partitions. NotFound: a queue of the job is missing.
  absl::StatusOr<std::vector<ledger::PutMark>> MarksOfNow();

  // Indexes of the lost items, in order. `batch` is sealed, with one mark for each partition. Of a
  // job with order_by none is known to be lost before no partition holds anything of the batch.
  // NotFound: a queue of the job is missing.
  absl::StatusOr<std::vector<uint64_t>> FindLost(const ledger::Batch& batch);

  size_t partitions() const { return inputs_.size(); }

 private:
  // A partition's mark, and the mark of its results once the partition is passed.
  struct Watched {
    ledger::PutMark input;
    std::optional<ledger::PutMark> output;
  };

  // The partitions that hold nothing of the batch, and have no result of it in the output queue.
  absl::StatusOr<std::vector<bool>> PassedPartitions(absl::Span<const ledger::PutMark> marks);

  const std::vector<queue::QueueId> inputs_;
  const queue::QueueId output_;
  queue::QueueStore* const queues_;            // not owned
  report::ReportClient* const report_client_;  // not owned
  const bool in_order_;                        // the job has order_by
  std::vector<Watched> watched_;               // by partition
};

}  // namespace muster::initiator::batch
