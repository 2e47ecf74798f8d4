// SPDX-License-Identifier: Apache-2.0

// LostItemDetector: finds the items of a sealed batch that are in no queue and were not counted
// either. A queue may lose what it acknowledged; the ledger does not.
//
// At first it looks at no message. The ledger has a mark for each partition of the input queue: how
// far the batch reaches into it. A partition is passed when its queue holds nothing up to the mark;
// what other batches have put since is beyond it. A result is in the output queue before its item
// leaves the input queue, so the end of the output queue is then a mark for the batch's results.
// Once that is passed, too, an item of the partition without a row in the report is lost:
//
//   input passes the put mark ─► output passes its end of that moment ─► no row: lost
//
// What stays at the head of a queue for long keeps it from passing: results of an initiator that is
// down, items that wait for their content or a handler that takes an hour. Where a head has not
// moved for a while the detector looks through the queues (QueueScan), which finds the loss
// whatever waits there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"
#include "services/initiator/batch/queue_scan.h"

namespace muster::initiator::batch {

// Of one batch. Thread-compatible.
class LostItemDetector {
 public:
  // Nothing is owned but a share of `scan`, which the detectors of the job have together; null: no
  // queue is looked through.
  LostItemDetector(const job::JobDefinition& job, const std::string& account,
                   queue::QueueStore* queues, report::ReportClient* report_client,
                   std::shared_ptr<QueueScan> scan, base::Clock* clock);
  ~LostItemDetector();
  LostItemDetector(const LostItemDetector&) = delete;
  LostItemDetector& operator=(const LostItemDetector&) = delete;

  // Marks that hold for any batch with all its puts made: the present ends of the input queue's
  // partitions. What was seen of the queues before does not matter any more. NotFound: a queue of
  // the job is missing.
  absl::StatusOr<std::vector<ledger::PutMark>> MarksOfNow();

  // Indexes of the lost items, in order. `batch` is sealed, with one mark for each partition, and
  // always the same one. Of a job with order_by none is known to be lost before no partition holds
  // anything of the batch.
  // NotFound: a queue of the job is missing.
  absl::StatusOr<std::vector<uint64_t>> FindLost(const ledger::Batch& batch);

  size_t partitions() const { return inputs_.size(); }

 private:
  // A partition's mark, and the mark of its results once the partition is passed.
  struct Watched {
    ledger::PutMark input = {};
    std::optional<ledger::PutMark> output = {};
    // What keeps it from being passed: the oldest position in its input or in the output.
    uint64_t head = 0;
    absl::Duration head_since = absl::InfiniteDuration();  // monotonic; infinite: it is passed
  };

  // The partitions that hold nothing of the batch, and have no result of it in the output queue.
  absl::StatusOr<std::vector<bool>> PassedPartitions(absl::Span<const ledger::PutMark> marks);
  void NoteHead(uint64_t head, Watched* partition) const;
  // What a scan has found since the batch has these marks; null: there is nothing new. Goes on with
  // the scan if it is time for one.
  absl::StatusOr<std::shared_ptr<const QueueSnapshot>> LookThrough(uint64_t batch);
  bool IsTimeForAScan() const;
  void LeaveScan();

  const std::vector<queue::QueueId> inputs_;
  const queue::QueueId output_;
  queue::QueueStore* const queues_;            // not owned
  report::ReportClient* const report_client_;  // not owned
  const std::shared_ptr<QueueScan> scan_;
  base::Clock* const clock_;      // not owned
  const bool in_order_;           // the job has order_by
  std::vector<Watched> watched_;  // by partition
  uint64_t batch_ = 0;            // that has joined scan_; 0: none
  uint64_t scan_number_ = 0;      // of the first scan that serves the batch as it is
  absl::Duration waits_since_;    // monotonic: for a scan
};

}  // namespace muster::initiator::batch
