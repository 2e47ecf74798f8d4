// SPDX-License-Identifier: Apache-2.0

// BatchEnqueuer: splits a batch into work items, and puts them into the partitions of the job's
// input queue.
//
//   input ─► slices ─► ledger (fsync) ─► queue (fsync) ─► trigger
//                                    └─► later, while the queue is full (BackPressure)
//
// The ledger comes first: what it holds can always be put again. Splitting is a pure function of
// the input and the job's limits, so a batch that was cut off goes on exactly where its ledger
// ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/retry.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/trigger_bus.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/registry.h"
#include "muster/telemetry/span.h"
#include "services/initiator/batch/back_pressure.h"
#include "services/initiator/batch/item_run.h"
#include "services/initiator/batch/ordered_items.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::batch {

// What an enqueuer works with. Nothing is owned; all of it outlives the enqueuer.
struct Dependencies {
  queue::QueueStore* queues = nullptr;
  bus::TriggerBus* bus = nullptr;
  ledger::BatchLedger* ledger = nullptr;
  blob::BlobStore* blobs = nullptr;
  base::Clock* clock = nullptr;
  telemetry::SpanSink* spans = nullptr;    // null: batches are not traced
  telemetry::Registry* metrics = nullptr;  // null: nothing is measured
};

struct Options {
  std::string account;
  std::string instance = "initiator";
  // Items that share one fsync of the ledger and one of the queue. The first run is small, so that
  // workers start soon, and each is twice as large as the one before, so that the initiator seldom
  // waits for a slow disk.
  int first_run_items = 16;
  int run_items = 128;
  // Called after each run, before the next one: its error ends Enqueue. May be empty.
  std::function<absl::Status()> before_next_run = nullptr;
  // An incarnation that the queue had lately (JobQueues::LateIncarnation), to spare a look before
  // the first put. Empty: the first put of a batch is preceded by a look.
  std::function<absl::StatusOr<std::string>(const queue::QueueId&)> late_incarnation = nullptr;
  // Not owned, outlives the enqueuer. Null: the queue is never full.
  BackPressure* back_pressure = nullptr;
};

// How far Enqueue is. Any thread may read it.
struct Progress {
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> transactions_read{0};
  std::atomic<uint64_t> transactions_enqueued{0};
};

// Thread-compatible: one thread works on one batch at a time; progress() is thread-safe.
class BatchEnqueuer {
 public:
  BatchEnqueuer(const job::JobDefinition* job, BatchSource* source, Dependencies dependencies,
                Options options);

  // Splits and puts the part of the batch that is not enqueued yet, then seals the batch. NotFound:
  // a queue of the job is missing. Cancelled: `stop` was requested. HasNotArrived (byte_source.h):
  // the source still grows; all that has arrived was put. After Cancelled or HasNotArrived the same
  // call continues later. Safe to repeat.
  //
  // Where the queue is full, the rest of what has arrived is split and recorded, and not put:
  // held_back() tells. So the ledger knows how large the batch is; the same call puts the rest.
  // A job with order_by has the items of each key put in their order.
  absl::Status Enqueue(uint64_t batch, const std::stop_token& stop);

  // Whether the last Enqueue has left items to a later one, for the queue is full.
  bool held_back() const { return held_back_; }

  // Puts the items at `indexes` again, from the ledger's boundaries and the source: for an open
  // batch, of which the queues have lost these. An item that is put twice is still counted once, by
  // its row in the report. DataLoss: the source does not have an item's bytes any more.
  absl::Status Refill(uint64_t batch, absl::Span<const uint64_t> indexes);

  // Sets progress() to what the record of the batch says, for a batch that needs no Enqueue.
  void Resume(const ledger::Batch& batch);

  // How far Enqueue is; all zero before its first call and Resume.
  const Progress& progress() const { return progress_; }

 private:
  absl::Status PutRecorded(const ledger::Batch& batch, uint64_t first, uint64_t end,
                           const std::stop_token& stop);
  absl::Status SplitRest(const ledger::Batch& batch, const std::stop_token& stop);
  // Splits what the source has from `start` on, into items from `index` on.
  absl::Status SplitFrom(const ledger::Batch& batch, const input::SliceStart& start, uint64_t index,
                         const std::stop_token& stop);
  // As SplitFrom, for a job with order_by: from behind `last` on, the last item that is recorded.
  absl::Status SplitInOrder(const ledger::Batch& batch,
                            const std::optional<ledger::ItemBoundary>& last,
                            const std::stop_token& stop);
  // Notes that an item is split, and puts the run if it is full.
  absl::Status EndItem(const ledger::Batch& batch, const ledger::ItemBoundary& item, ItemRun* run,
                       int* wanted, const std::stop_token& stop);
  // Finds the room for the next run, or that there is none.
  absl::Status BeginRun(const ledger::Batch& batch, ItemRun* run);
  // Appends the items of the run that the ledger does not have.
  absl::Status Record(const ledger::Batch& batch, ItemRun* run);
  // Records the run and puts it; while the batch is held back, records it only.
  absl::Status Put(const ledger::Batch& batch, ItemRun* run, const std::stop_token& stop);
  // Puts the messages of one partition, and records that in the batch's trace.
  absl::Status PutPartition(const ledger::Batch& batch, size_t partition, const ItemRun& run,
                            const std::stop_token& stop);
  absl::Status PutInto(size_t partition, const std::vector<queue::NewMessage>& messages, bool again,
                       const std::stop_token& stop);
  // Puts the run of a refill, and counts its items.
  absl::Status PutAgain(const ledger::Batch& batch, ItemRun* run);
  absl::StatusOr<std::string> IncarnationOf(const queue::QueueId& queue, bool again) const;
  // Takes the marks of `batch` as those before the next put.
  void BeginMarks(const ledger::Batch& batch);
  // Adds an item that the ledger has, with its bytes where the message carries them.
  absl::Status AddRecorded(const ledger::Batch& batch, uint64_t index,
                           const ledger::ItemBoundary& item, ItemRun* run);
  // The same of a job with order_by.
  absl::Status AddRecordedInOrder(uint64_t index, const ledger::ItemBoundary& item, ItemRun* run);
  // Deletes the blobs of items that a cancelled batch was not to have any more.
  void DeleteUnrecorded(uint64_t batch, uint64_t first,
                        absl::Span<const ledger::ItemBoundary> items);
  void Trigger(const queue::QueueId& queue, int64_t messages);

  const job::JobDefinition* const job_;  // not owned
  BatchSource* const source_;            // not owned
  const Dependencies deps_;
  const Options options_;
  const std::vector<queue::QueueId> partitions_;
  base::RetryPolicy retry_;
  // Of a job with order_by, while an item is read again. It holds a window of the source.
  std::optional<OrderedItems> again_;
  Progress progress_;
  bool held_back_ = false;

  // How far the batch reaches into its partitions; empty: an older muster has put a part of it.
  std::vector<ledger::PutMark> marks_;
  // Of the partitions that were put into since BeginMarks; empty: not yet. Each was read before the
  // first put, or some time earlier: if the queue is made anew in between, the mark is too old, and
  // the batch's items are put once more than they must be.
  std::vector<std::string> incarnations_;
};

}  // namespace muster::initiator::batch
