// CancelAcks: who has said that it works no more on a batch that was given up.
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
#include "muster/bus/trigger_bus.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "services/initiator/batch/engine.h"
#include "services/initiator/batch/job_queues.h"

namespace muster::initiator::batch {

// Thread-safe.
class CancelAcks {
 public:
  // `clock` is not owned and outlives it.
  explicit CancelAcks(base::Clock* clock) : clock_(clock) {}

  // Calls `cancel`, and waits until each of `instances` has acknowledged `batch` since, or
  // `patience` is over. Answers how many of them have. The error is cancel's.
  absl::StatusOr<int> Collect(uint64_t batch, const std::vector<std::string>& instances,
                              absl::Duration patience, const std::function<absl::Status()>& cancel);

  // Never blocks.
  void OnAcknowledged(uint64_t batch, const std::string& instance);

 private:
  struct Awaited {
    int waiting = 0;  // calls of Collect
    std::set<std::string> acknowledged;
  };

  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<uint64_t, Awaited> awaited_ ABSL_GUARDED_BY(mu_);
};

// BatchScheduler: sees every batch of this initiator through that is not complete yet, with a few
// threads however many batches there are, and knows where each stands.
//
// A batch is stepped (open_batch.h) when it is new, when more of its content has arrived, when
// somebody says that it is complete or cancelled, and once in a while to see whether a queue has
// lost anything. How far it is counted is asked when a controller says that it has counted.

struct SchedulerOptions {
  int threads = 4;  // batches that are split at a time
  // Between two looks whether a queue has lost items of a batch that is not complete.
  absl::Duration loss_check_interval = absl::Seconds(2);
  // Between two questions how far a batch is counted.
  absl::Duration progress_interval = absl::Milliseconds(50);
  // How long the content of a batch that is over stays: so long can its items be made again.
  absl::Duration content_retention = absl::Hours(24);
  // An upload that was cut off goes on by itself within this, where its sender is still there: it
  // may take rpc::kMaxReconnectWait to connect, and as long again to try.
  absl::Duration sender_grace = absl::Seconds(10);
};

// Where a batch stands.
struct BatchStatus {
  ledger::Batch batch;
  report::Progress counted;            // all zero before anything was counted
  std::optional<SplitProgress> split;  // while it is worked on
  double split_share = 0;              // of the content that there is: 0 to 1
  absl::Status problem;                // what it is waiting to pass; OK: nothing
};

// Thread-safe.
class BatchScheduler {
 public:
  BatchScheduler(const EngineDependencies& tools, SchedulerOptions options);
  ~BatchScheduler();  // Stop()s

  // Takes up every batch that the ledger does not call complete or cancelled.
  absl::Status Start();
  // Batches stay where they are; a new scheduler goes on with them.
  void Stop();

  // The batch is new, or more of its content has arrived, or it has changed in the ledger: looks at
  // it soon, or `after` so long.
  void Advance(uint64_t batch, absl::Duration after = absl::ZeroDuration());

  // Somebody sends the batch's content from now on, beside those who do so already; looks at the
  // batch soon.
  void NoteSender(uint64_t batch);
  // One of them does no more.
  void NoteSenderGone(uint64_t batch);

  // As BatchLedger::Cancel; tells everybody. Of `reason` a line is kept.
  absl::Status Cancel(uint64_t batch, const std::string& reason);
  // Also waits, for as long as `patience`, until each of `workers` has said that it works on the
  // batch no more. Answers how many of them have.
  absl::StatusOr<int> Cancel(uint64_t batch, const std::string& reason,
                             const std::vector<std::string>& workers, absl::Duration patience);

  // NotFound: no such batch. Unavailable: it is not known how far a batch is counted that nobody
  // works on here any more.
  absl::StatusOr<BatchStatus> Get(uint64_t batch);

  // As the ledger says, which alone is asked. NotFound: no such batch.
  absl::StatusOr<bool> IsCancelled(uint64_t batch);

  // Waits until there is more news of any batch than `seen`, which it then sets, or the monotonic
  // clock reaches `deadline`, or the scheduler stops. 0: none was seen.
  void AwaitNews(uint64_t* seen, absl::Duration deadline);

 private:
  struct Entry {
    std::shared_ptr<BatchEngine> work;
    bool busy = false;                                 // a thread has it
    absl::Duration step_at = absl::ZeroDuration();     // monotonic; when to step it
    absl::Duration ask_at = absl::InfiniteDuration();  // when to ask how far it is counted
    absl::Duration asked = -absl::InfiniteDuration();  // when that was done last
    int failures = 0;                                  // steps in a row
    int senders = 0;                                   // of content
    absl::Duration left_at = absl::ZeroDuration();     // monotonic; since when there is none
    absl::Status problem;
    std::optional<report::Progress> counted;

    absl::Duration due() const { return std::min(step_at, ask_at); }
  };

  void OnEvent(const bus::InterRoleCommunicationEvent& event);
  Entry& AdvanceLocked(uint64_t batch, absl::Duration after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets when `entry` is due, and sees that a thread knows.
  void ScheduleLocked(uint64_t batch, Entry* entry, absl::Duration step_at, absl::Duration ask_at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();
  // The batch that is due next and its moment; nullopt: none is.
  std::optional<std::pair<absl::Duration, uint64_t>> NextLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Steps the batch, and asks how far it is counted; lets go of mu_ meanwhile.
  void ProcessDue(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Asks how far it is counted; lets go of mu_ meanwhile. Whoever calls is busy with it.
  void AskLocked(uint64_t batch, Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteStepLocked(uint64_t batch, Entry* entry, const absl::StatusOr<StepResult>& step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteProblemLocked(uint64_t batch, Entry* entry, const absl::Status& problem)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Its content is nothing that the job can be run on.
  void CancelRefused(uint64_t batch, const absl::Status& why);
  double SplitShare(const ledger::Batch& batch);
  // OK: its content is whole, or somebody sends it.
  absl::Status CheckSender(const ledger::Batch& batch);
  void PublishCancellation(uint64_t cancelled);
  // Deletes content that nobody needs any more.
  void Sweep();
  void AnnounceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const EngineDependencies tools_;
  const SchedulerOptions options_;
  JobQueues job_queues_;
  CancelAcks cancel_acks_;
  std::stop_source stop_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;

  base::Mutex mu_;
  base::CondVar due_changed_;
  base::CondVar news_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<absl::Duration, uint64_t>> due_ ABSL_GUARDED_BY(mu_);  // of those not busy
  uint64_t news_count_ ABSL_GUARDED_BY(mu_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration sweep_at_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();  // monotonic

  std::vector<std::thread> threads_;
};

}  // namespace muster::initiator::batch
