// SPDX-License-Identifier: Apache-2.0

// QueueScan: looks through the queues of a job for the items of its open batches, whatever else
// waits there, and whoever holds it.
//
//   input partitions, each until its end of then ─► output queue until its real end ─► snapshot
//
// An item that was in no input when the scan came there had left it before, so its result was put
// before. A result that was not in the output, which is read after, was counted before. So an item
// that the scan has found in neither, and that has no row in the report after the scan, is lost.
//
// The output is read until nothing more is there, and not only until its end of some moment: the
// controller may move a result to the tail meanwhile.
//
// A scan reads every message of the queues; docs/reliability.md says what that costs. So one scan
// serves all batches of the job, and scans take at most 5 % of the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace muster::initiator::batch {

// QueueSnapshot: what a scan has found of the batches that it served. Immutable once it is
// finished, and then thread-safe.
class QueueSnapshot {
 public:
  // Whether the item was in a queue, or may have been.
  bool Had(uint64_t batch, uint64_t index) const;
  // Whether an input had any item of the batch.
  bool HadInInput(uint64_t batch) const { return in_input_.contains(batch); }

 private:
  friend class QueueScan;
  using Item = std::pair<uint64_t, uint32_t>;  // batch, index

  std::vector<Item> items_;               // sorted
  absl::flat_hash_set<uint64_t> wholly_;  // batches that may have any of their items in a queue
  absl::flat_hash_set<uint64_t> in_input_;
};

// Items of open batches that one scan can note, 16 bytes each. Beyond that the scan is given up: so
// many items say little about a few that were lost.
inline constexpr size_t kMaxScannedItems = 1'000'000;

// Thread-safe. The engines of a job share it, and it ends with the last of them. It holds one
// snapshot, until each batch that it serves has taken it or left, or the next one is finished, and
// at most one that is being made.
class QueueScan {
 public:
  struct Queues {
    std::vector<queue::QueueId> inputs;
    queue::QueueId output;
  };

  // Neither `store` nor `clock` is owned.
  QueueScan(Queues queues, queue::QueueStore* store, base::Clock* clock,
            size_t max_items = kMaxScannedItems);

  // From now on scans serve the batch. Answers the number of the next scan to begin: the first that
  // sees all that the batch has put.
  uint64_t Join(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  void Leave(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Goes on with the scan that runs, or begins one if it is time for one; for a second or so. Does
  // nothing while another thread does that. After an error, which is the store's, a new scan begins
  // after a pause; likewise where the output queue was made anew meanwhile.
  absl::Status Advance() ABSL_LOCKS_EXCLUDED(mu_);

  // The snapshot of scan `number` or a later one, if it is finished and serves the batch; null: not
  // yet, or the batch has had it.
  std::shared_ptr<const QueueSnapshot> Take(uint64_t batch, uint64_t number)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A scan that runs.
  struct Run {
    uint64_t number = 0;
    absl::flat_hash_set<uint64_t> batches;  // that it serves
    size_t queue = 0;           // which is being read: an input, or behind them the output
    uint64_t from = 0;          // position in it
    queue::QueueExtent extent;  // of it, when the scan came there
    absl::Duration spent;
    std::shared_ptr<QueueSnapshot> found;
  };

  std::unique_ptr<Run> TakeRun() ABSL_LOCKS_EXCLUDED(mu_);
  // Reads one page. Answers whether the scan is finished.
  absl::StatusOr<bool> ReadPage(Run* run);
  // Behind the last message of a queue. Answers whether that was the last queue.
  absl::StatusOr<bool> EndQueue(Run* run);
  void Note(const queue::StoredMessage& message, bool is_result, Run* run) const;
  void Finish(std::unique_ptr<Run> run, const absl::Status& ended) ABSL_LOCKS_EXCLUDED(mu_);

  const Queues queues_;
  queue::QueueStore* const store_;  // not owned
  base::Clock* const clock_;        // not owned
  const size_t max_items_;

  base::Mutex mu_;
  absl::flat_hash_set<uint64_t> members_ ABSL_GUARDED_BY(mu_);
  uint64_t begun_ ABSL_GUARDED_BY(mu_) = 0;                              // scans
  absl::Duration due_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // monotonic, of the next
  bool is_busy_ ABSL_GUARDED_BY(mu_) = false;  // a thread has taken the run, or makes one
  std::unique_ptr<Run> run_ ABSL_GUARDED_BY(mu_);
  uint64_t finished_ ABSL_GUARDED_BY(mu_) = 0;  // the number of snapshot_
  std::shared_ptr<const QueueSnapshot> snapshot_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<uint64_t> untaken_ ABSL_GUARDED_BY(mu_);  // batches that are to take it
};

}  // namespace muster::initiator::batch
