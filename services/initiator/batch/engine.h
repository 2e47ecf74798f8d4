// SPDX-License-Identifier: Apache-2.0

// BatchEngine: one batch on its way from its source until its results are counted, in steps.
//
//   split and put what has arrived ─► seal ─► results are counted ─► done
//                  ▲                                      │
//                  └────── put again what was lost ◄──────┘
//
// While the queue is full, the engine splits and seals without putting, and puts the rest when
// workers have worked some items off (BackPressure).
//
// The engine registers the batch with the report while it puts the first run of items; it puts no
// second run before the report knows the batch.
//
// Each step reads in the ledger where the batch stands: after a crash the first step of a new
// process goes on where the last one of the old process ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/worker_pool.h"
#include "muster/content/content_store.h"
#include "muster/content/ledger_content.h"
#include "muster/input/byte_source.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/suspended_batches.h"
#include "muster/job/job.h"
#include "muster/job/job_registry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"
#include "muster/sync/optimistic_sync_store.h"
#include "services/initiator/batch/back_pressure.h"
#include "services/initiator/batch/damaged_items.h"
#include "services/initiator/batch/enqueuer.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/lost_item_detector.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::batch {

// What batch engines work with. Nothing is owned; all of it outlives the engines.
struct EngineDependencies {
  Dependencies stores;
  Options options;
  // Null: the content of each batch is the file at its source_path.
  content::ContentStore* content = nullptr;
  report::ReportClient* report_client = nullptr;
  // Where workers read the content of items; null: this process does not serve it.
  content::LedgerContent* item_content = nullptr;
  // What item_content has found damaged; set with it.
  DamagedItems* damaged = nullptr;
  // The record of cancelled batches, which workers read; may be null.
  item::CancelledBatches* cancelled = nullptr;
  // The record of suspended batches, which workers read; null: batches are never suspended.
  item::SuspendedBatches* suspended = nullptr;
  // Shared by the engines of this process; null: no queue is ever full.
  BackPressure* back_pressure = nullptr;
  // Called when it is the turn of another batch of a full queue: to be stepped soon. Set with
  // `back_pressure` where there are several engines.
  std::function<void(uint64_t batch)> on_turn = nullptr;
  // Whether the batch's job has workers, and none of them fits the batch. Set with `suspended`.
  std::function<bool(const ledger::Batch&)> no_worker_fits = nullptr;
  // The registry in which processors find the jobs of batches; null: processors have the jobs from
  // elsewhere.
  job::JobRegistry* jobs = nullptr;
  // The records that the roles of a mesh share, from which those of deleted jobs are removed. Set
  // with `jobs`.
  sync::OptimisticSyncStore* records = nullptr;
  // Decides a batch that an earlier process has left undecided, before anything is put: as
  // Submissions::Decide. Empty: no batch is undecided.
  std::function<absl::StatusOr<bool>(uint64_t batch)> decide = nullptr;
  // Claims the request ids of open batches again whose claims the store has lost; empty: no request
  // id is claimed.
  std::function<absl::Status()> restore_requests = nullptr;
  // Releases the claim on the request id of a batch that is over; empty: no request id is claimed.
  std::function<absl::Status(const ledger::Batch&)> release_request = nullptr;
  // As of BatchRemover; may be empty.
  std::function<absl::Status(const ledger::Batch&)> settle_request = nullptr;
  // As of BlobSweep.
  std::function<absl::Status(uint64_t batch)> find_elsewhere = nullptr;
  // As find_elsewhere of DeletedJobs.
  std::function<absl::StatusOr<std::optional<uint64_t>>(const std::string& job,
                                                        const std::string& but_of_revision)>
      find_open_elsewhere = nullptr;
  // Registers batches with the report while their first items are put; null: that waits until the
  // report has answered.
  base::WorkerPool* registrations = nullptr;
  // Called when a step finds the batch complete; may be called again. May be empty.
  std::function<void(const ledger::Batch&)> on_complete = nullptr;
  // Called when the number of a batch turns out to be another initiator's; may be empty.
  std::function<void()> on_number_taken = nullptr;
};

// How a step ended.
enum class StepResult {
  kNeedsContent,  // all that has arrived is split: more of the upload must come
  kHeldBack,      // the queue is full: workers must work some items off. hold() says when to look
  kNeedsResults,  // all is put: results must be counted
  kRefused,       // the job cannot run on this content: refusal() says why
  kDisowned,      // its number is another initiator's: the batch has ended, and is to be sent again
  kCancelled,     // this step found the cancellation in the report, and the ledger has followed
  kDone,          // complete or cancelled
};

// Whether the error of a step only says that an earlier batch of the job, which keeps the order of
// its batches, is to be put first. Which one it names changes with each one that is put.
bool AwaitsTurn(const absl::Status& step);

// How much of a batch is split and put, by this process and earlier ones.
struct SplitProgress {
  uint64_t transactions_read = 0;
  uint64_t transactions_enqueued = 0;
  uint64_t bytes_read = 0;
};

// One thread calls Step, hold and refusal; split_progress is thread-safe.
class BatchEngine {
 public:
  // `queues` is not owned and outlives the batch. `source`: the batch's content, where the caller
  // has opened it; null: the first step opens it.
  BatchEngine(uint64_t number, const EngineDependencies& tools, JobQueues* queues,
              std::unique_ptr<BatchSource> source = nullptr)
      : number_(number), tools_(tools), queues_(queues), source_(std::move(source)) {}

  // For a caller that has registered the batch with the report: the first step does not do it
  // again.
  void NoteRegistered() { registered_ = true; }

  // Advances the batch as far as possible. DataLoss: a record is corrupt, the content is not what
  // its submitter sealed, or items vanish from the queue again and again and nothing is counted in
  // between; the engine goes on to put them again, after growing pauses. Cancelled: `stop`. After
  // any error the next step tries again.
  absl::StatusOr<StepResult> Step(const std::stop_token& stop);

  // Only for the thread that calls Step.
  const absl::Status& refusal() const { return refusal_; }
  // Of the last step that answered kHeldBack.
  const BackPressure::Hold& hold() const { return hold_; }

  // nullopt: this process has not read the batch's content yet; the ledger says how far the batch
  // is.
  std::optional<SplitProgress> split_progress() const;

 private:
  // As Step, but the batch stays in the line of its queue.
  absl::StatusOr<StepResult> StepOnce(const std::stop_token& stop);
  absl::Status Prepare(const ledger::Batch& batch, const std::stop_token& stop);
  absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(const ledger::Batch& batch,
                                                          const std::stop_token& stop);
  absl::StatusOr<std::unique_ptr<BatchSource>> SourceOver(
      const ledger::Batch& batch, std::shared_ptr<const input::ByteSource> content);
  // DataLoss: `*content`, which is to be split, is not what the batch's submitter sealed. If it is,
  // `*content` will read nothing else.
  absl::Status CheckContent(const ledger::Batch& batch,
                            std::shared_ptr<const input::ByteSource>* content,
                            const std::stop_token& stop);
  // Starts to register the batch with the report, while the content is split.
  void BeginToRegister();
  report::BatchShape Shape() const;
  // Notes what the report has answered to a registration, and answers the same.
  absl::Status NoteAnswer(absl::Status registered);
  // Waits until the report knows the batch, or the registration failed.
  absl::Status AwaitRegistered();
  // The last step of a batch that is complete or cancelled.
  absl::StatusOr<StepResult> End(const ledger::Batch& batch);
  // Records the span of the batch, as it is in the ledger.
  void RecordEnd(const ledger::Batch& batch) const;
  void RecordEnd() const;
  // As Step, of a batch that is neither complete nor cancelled, once it is prepared.
  absl::StatusOr<StepResult> Advance(const ledger::Batch& batch, const std::stop_token& stop);
  absl::Status Enqueue(const ledger::Batch& batch, const std::stop_token& stop);
  // Of a job with order_by. Unavailable: a batch of the job that was taken in before this one is
  // not wholly put yet.
  absl::Status AwaitTurn(const ledger::Batch& batch);
  // Has the batch stepped that AwaitTurn has kept waiting for this one.
  void PassTurnOn(const ledger::Batch& batch);
  // Takes a place in the line of the batch's queue. Answers kHeldBack.
  absl::StatusOr<StepResult> HoldBack();
  void LeaveLine();
  // Puts the batch's job back into the registry if the broker has lost it, so that processors find
  // it.
  absl::Status RestoreJob(const ledger::Batch& batch);
  // As RestoreJob, but asks the registry only once in a while.
  absl::Status RestoreJobIfDue(const ledger::Batch& batch);
  // As LostItemDetector, after it has made a queue again that is missing.
  absl::StatusOr<std::vector<uint64_t>> FindLost(const ledger::Batch& batch);
  // Gives marks to a batch that was put by an older muster, or redriven, and answers them.
  absl::StatusOr<std::vector<ledger::PutMark>> MarkFromNowOn(const ledger::Batch& batch);
  // Suspends a batch that no worker has fitted for a while, and ends the suspension when one does.
  // Unavailable: the batch is suspended.
  absl::Status CheckSuspension(const ledger::Batch& batch);
  absl::Status EndSuspension();
  // DataLoss: the content of the batch is damaged. Its items have left the queue, or will; they are
  // put again once the content is whole.
  absl::Status CheckItemContent();
  // The error that keeps workers from working on the items that are put, if there is one. Mends
  // what it can.
  absl::Status CheckWorkable(const ledger::Batch& batch);
  // `counted`: where the counting of the batch stands.
  absl::Status RefillWhatIsLost(const ledger::Batch& batch, const report::Progress& counted);
  // Registers the batch again, and answers where its counting stands.
  absl::StatusOr<report::Progress> AskReport();
  // Puts the `lost` items again, unless the pause after fruitless refills is not over. `counted`:
  // items that the report has.
  absl::Status Refill(const ledger::Batch& batch, const std::vector<uint64_t>& lost,
                      int64_t counted);
  // Of a batch that is over: nothing is kept of it but what a redrive needs.
  absl::Status CleanUp(const ledger::Batch& batch);

  const uint64_t number_;
  const EngineDependencies tools_;
  JobQueues* const queues_;  // not owned
  std::optional<job::JobDefinition> job_;
  std::string owner_;               // of the batch; set with job_
  std::vector<uint64_t> replaces_;  // likewise
  std::unique_ptr<BatchSource> source_;
  std::optional<LostItemDetector> lost_items_;
  // Of a job with order_by: those of its batches that are below this number are wholly put, or
  // over. Not a list of the others: many batches may wait, each for all that are before it.
  uint64_t put_below_ = 0;
  int fruitless_refills_ = 0;  // in a row
  int64_t counted_at_refill_ = -1;
  absl::Duration refill_at_ = -absl::InfiniteDuration();    // monotonic; no refill before it
  absl::Duration misfit_since_ = absl::InfiniteDuration();  // monotonic; infinite: a worker fits
  absl::Duration job_trusted_until_ = -absl::InfiniteDuration();  // monotonic
  absl::Status content_damage_;  // what the last check of the content found
  absl::Duration content_checked_again_at_ = -absl::InfiniteDuration();  // monotonic
  absl::Status refusal_;
  bool was_held_back_ = false;  // at any time
  bool is_in_line_ = false;     // of a full queue
  bool advanced_ = false;       // the batch was not over when this engine began
  BackPressure::Hold hold_;
  std::unique_ptr<BatchEnqueuer> enqueuer_;  // set once, after all of the above

  std::atomic<const Progress*> progress_ = nullptr;  // enqueuer_'s, for other threads

  bool registered_ = false;    // the report knows the batch
  bool number_taken_ = false;  // the report has another initiator's batch of this number
  std::future<absl::StatusOr<report::Progress>> registering_;
  bool may_be_counted_ = true;  // items had their rows before this engine put any
};

}  // namespace muster::initiator::batch
