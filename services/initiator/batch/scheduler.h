// SPDX-License-Identifier: Apache-2.0

// BatchScheduler: steps every incomplete batch of this initiator until it is complete, with a fixed
// number of threads for any number of batches, and keeps the status of each.
//
// The scheduler steps a batch (BatchEngine::Step) when the batch is new, when more of its content
// has arrived, when a controller completes it or a caller cancels it, when the queue may have room
// for a batch that is held back, and once in a while to check whether a queue has lost items. The
// more batches wait for results, the seldomer is each checked: so many waiting batches cost no more
// than some, and a batch with news goes before them. It asks the report for the batch's progress
// when a controller publishes that it has counted results.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/worker_pool.h"
#include "muster/bus/trigger_bus.h"
#include "muster/item/batch_filter.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "services/initiator/batch/cancel_acks.h"
#include "services/initiator/batch/engine.h"
#include "services/initiator/batch/job_queues.h"
#include "services/initiator/batch/status.h"
#include "services/initiator/retention/blob_sweep.h"
#include "services/initiator/retention/deleted_jobs.h"
#include "services/initiator/retention/remover.h"
#include "services/initiator/retention/stopped_uploads.h"

namespace muster::initiator::batch {

struct SchedulerOptions {
  int threads = 4;  // batches that are stepped at a time
  // Between two checks whether a queue has lost items of an incomplete batch. With N batches, at
  // least N times check_spacing.
  absl::Duration loss_check_interval = absl::Seconds(2);
  // A check asks report and queues some questions, which take about a millisecond of a core here
  // and there together.
  absl::Duration check_spacing = absl::Milliseconds(50);
  // At least so long lies between two questions to the report about one batch.
  absl::Duration progress_interval = absl::Milliseconds(50);
  // The sender of an upload that was cut off resumes it by itself within this time, if it still
  // runs: it may take rpc::kMaxReconnectWait to connect, and as long again to try.
  absl::Duration sender_grace = absl::Seconds(10);
  retention::UploadLimits uploads = {};
};

// Thread-safe.
class BatchScheduler {
 public:
  BatchScheduler(const EngineDependencies& tools, SchedulerOptions options);
  ~BatchScheduler();  // Stop()s

  // Schedules every batch that is neither complete nor cancelled in the ledger: first those that
  // are not wholly put.
  absl::Status Start() ABSL_LOCKS_EXCLUDED(mu_);
  // Incomplete batches stay as they are; a new scheduler continues them.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // The stores are back: has a thread of the scheduler claim what they may have lost
  // (EngineDependencies::restore_requests), as Start does, again and again until that succeeds.
  // Returns at once.
  void RestoreRequests() ABSL_LOCKS_EXCLUDED(mu_);

  // Call this when the batch is new, more of its content has arrived, or it has changed in the
  // ledger: a thread steps it soon, or once `after` has passed.
  void Advance(uint64_t batch, absl::Duration after = absl::ZeroDuration())
      ABSL_LOCKS_EXCLUDED(mu_);

  // One more client sends the batch's content from now on; a thread steps the batch soon.
  void NoteSender(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // One of these clients has stopped sending. An upload that is not whole, and has no other sender,
  // expires when nothing of it arrives for as long as its job says: its batch is cancelled, and its
  // content deleted. Senders get FailedPrecondition, reason UPLOAD_EXPIRED, from then on.
  void NoteSenderGone(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // As StoppedUploads::CheckRoom, of all uploads that no client sends.
  absl::Status CheckUploads();
  // Of all uploads that no client sends.
  retention::StoppedUploads::Totals stopped_uploads() const { return stopped_uploads_.totals(); }

  // Gives up an open or sealed batch; then tells the workers and the batch's upload. The ledger
  // keeps one line of `reason`. NotFound: no such batch. FailedPrecondition: it is complete, or has
  // a receipt. Unavailable: it is sealed, and the report, which knows whether it has a receipt,
  // does not answer; if the report has recorded the cancellation, the ledger follows by itself.
  absl::Status Cancel(uint64_t batch, const std::string& reason) ABSL_LOCKS_EXCLUDED(mu_);
  // Also waits, for `patience` at most, until each of `workers` has acknowledged that it no longer
  // works on the batch. Answers how many of them have.
  absl::StatusOr<int> Cancel(uint64_t batch, const std::string& reason,
                             const std::vector<std::string>& workers, absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mu_);

  // As BatchRemover::Delete.
  absl::Status Delete(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // NotFound: no such batch, or an undecided one. Unavailable: the batch has ended, and the report
  // does not say how many of its items are counted.
  absl::StatusOr<BatchStatus> Get(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // The statuses of batches that a list has just read from the ledger, in the same order; at most
  // report::kMaxListedBatches. Asks the report at most once. Unavailable: one of the batches has
  // ended, and the report does not answer.
  absl::StatusOr<std::vector<BatchStatus>> StatusesOf(std::vector<ledger::Batch> batches)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The statuses of up to `max` of the batches that are neither complete nor cancelled, the newest
  // first. Asks only the ledger: `counted` is what the report has said last.
  absl::StatusOr<std::vector<BatchStatus>> OpenBatches(size_t max) ABSL_LOCKS_EXCLUDED(mu_);

  // Of the batches below `below` that have a `removal_problem`, up to `max` that the filter lets
  // through, as FindBatches. Asks only the ledger.
  absl::StatusOr<ledger::BatchPage> FindRemovalProblems(const item::BatchFilter& filter,
                                                        uint64_t below, size_t max)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Asks only the ledger. NotFound: no such batch.
  absl::StatusOr<bool> IsCancelled(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until the status of any batch has changed since the news number `*seen`, or the monotonic
  // clock reaches `deadline`, or the scheduler stops. Then sets `*seen` to the latest number. Start
  // with 0.
  void AwaitNews(uint64_t* seen, absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes news of its own, for a caller that wants another thread's AwaitNews to return.
  void Announce() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    std::shared_ptr<BatchEngine> work;
    bool busy = false;                                 // a thread works on it
    absl::Duration step_at = absl::ZeroDuration();     // monotonic; when to step it
    absl::Duration ask_at = absl::InfiniteDuration();  // when to ask the report for its progress
    absl::Duration asked = -absl::InfiniteDuration();  // when the report was last asked
    bool is_held_back = false;                         // by the last step
    int failures = 0;                                  // failed steps in a row
    int senders = 0;                                   // of content
    absl::Duration left_at = absl::ZeroDuration();     // monotonic; since when it has no sender
    absl::Status problem;
    std::optional<report::Progress> counted;

    absl::Duration due() const { return std::min(step_at, ask_at); }
  };

  void OnEvent(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  Entry& AdvanceLocked(uint64_t batch, absl::Duration after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets when `entry` is due, and wakes a thread.
  void ScheduleLocked(uint64_t batch, Entry* entry, absl::Duration step_at, absl::Duration ask_at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Steps the batch, and asks the report for its progress; releases mu_ meanwhile.
  void ProcessDue(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Asks the report for the batch's progress; releases mu_ meanwhile. The caller has set
  // entry->busy.
  void AskLocked(uint64_t batch, Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteStepLocked(uint64_t batch, Entry* entry, const absl::StatusOr<StepResult>& step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteProblemLocked(uint64_t batch, Entry* entry, const absl::Status& problem)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Cancels a batch because its job cannot run on its content.
  absl::Status CancelRefused(uint64_t batch, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Decides that the batch is cancelled, and records it.
  absl::Status RecordCancel(uint64_t batch, const std::string& reason);
  absl::Duration CheckIntervalLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What is known of the batch's status without the report. True: the report need not be asked.
  bool StatusHere(BatchStatus* batch_status) ABSL_LOCKS_EXCLUDED(mu_);
  // Notes the problem of a complete batch that the report does not prove.
  void CheckCounted(BatchStatus* batch_status);
  bool IsComplete(uint64_t number);
  double SplitShare(const ledger::Batch& batch) ABSL_LOCKS_EXCLUDED(mu_);
  // OK: the content is whole, or a client sends it, or may still resume it.
  absl::Status CheckSender(const ledger::Batch& batch) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the batch is split of an upload that its submitter has not sealed.
  bool AwaitsContent(const ledger::Batch& batch) const;
  absl::Duration UploadExpiryOf(const ledger::Batch& batch) const;
  // Notes when the upload of the batch expires, if it has one that no client sends.
  void NoteStopped(const ledger::Batch& batch) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives up some of the uploads that have expired. False: none has.
  bool ExpireUploads() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ExpireUpload(uint64_t number) ABSL_LOCKS_EXCLUDED(mu_);
  void RefuseContent(uint64_t cancelled);
  // Tells the workers and the batch's upload.
  void PublishCancellation(uint64_t cancelled) ABSL_LOCKS_EXCLUDED(mu_);
  // Claims lost request ids again, and schedules the next try where that fails.
  void RestoreRequestsNow() ABSL_LOCKS_EXCLUDED(mu_);
  // Removes some of what is due. Answers when to call it again.
  absl::Duration Sweep() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether more of a pass over the blobs remains.
  bool SweepBlobs() ABSL_LOCKS_EXCLUDED(mu_);
  void AnnounceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SchedulerOptions options_;
  base::WorkerPool registrations_;  // one task at most for each batch
  const EngineDependencies tools_;
  JobQueues job_queues_;
  retention::BatchRemover remover_;
  // These are of the one thread that sweeps.
  retention::DeletedJobs deleted_jobs_;
  // Monotonic; not at once, for only then it has heard which other initiators there are.
  absl::Duration deleted_jobs_at_;
  retention::BlobSweep blob_sweep_;
  absl::Duration blob_pass_at_;  // monotonic
  retention::StoppedUploads stopped_uploads_;
  CancelAcks cancel_acks_;
  std::stop_source stop_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;

  base::Mutex mu_;
  base::CondVar due_changed_;
  base::CondVar news_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<absl::Duration, uint64_t>> due_
      ABSL_GUARDED_BY(mu_);  // only entries that are not busy
  uint64_t news_count_ ABSL_GUARDED_BY(mu_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // Monotonic; when to claim lost request ids again. No two threads do so at a time.
  absl::Duration restore_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  bool restore_failed_ ABSL_GUARDED_BY(mu_) = false;                     // the last time
  absl::Duration sweep_at_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();  // monotonic

  std::vector<std::thread> threads_;
};

}  // namespace muster::initiator::batch
