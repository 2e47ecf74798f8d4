// SPDX-License-Identifier: Apache-2.0

// Settler: ends leases. One thread takes all settlements that have gathered while it was busy, and
// waits a moment for more while other messages are in work (group commit). Then it
//   1. puts the outputs durably, in as few Puts as possible, and fires the trigger of the output
//      queue;
//   2. only then deletes the inputs, sets the given-up ones aside and gives the rest back, with one
//      call per partition and verb.
// It never deletes an input without its outputs. If the Put fails it gives the input back uncharged
// or, if the store refuses even that, leaves the lease to expire.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/retry.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/metrics.h"
#include "muster/listener/subscriber.h"
#include "muster/listener/trigger_sender.h"
#include "muster/listener/verdict.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

struct SettlerOptions {
  std::vector<queue::QueueId> partitions;
  std::optional<queue::QueueId> output_queue;
  OutputPacker pack_outputs;                           // as in ListenerOptions
  std::string holder;                                  // role instance, for causes
  absl::Duration linger = absl::ZeroDuration();        // maximum wait of a settlement for others
  absl::Duration put_failed_delay = absl::Seconds(1);  // of an input after a failed Put of outputs

  // Callbacks; all are called with no lock held.
  // A message will be visible again after this time.
  std::function<void(absl::Duration)> on_delayed;
  // Like on_delayed, for a message left to other listeners; `wanted` says what it needs.
  std::function<void(const queue::QueueId&, const std::string& wanted, absl::Duration)>
      on_left_to_others;
  // A lease ended, by a settlement in time or too late.
  std::function<void(const Lease&, bool in_time)> on_settled;
  std::function<void(const absl::Status&)> on_error;
};

// Thread-safe. LeaseTable bounds the number of leases, and so the queue of settlements.
class Settler {
 public:
  struct Item {
    LeasePtr lease;  // StartSettling returned true
    Verdict verdict;
    int attempts = 0;  // charged so far, for the cause of a poison message
  };

  // None of the pointers is owned; all outlive the settler.
  Settler(SettlerOptions options, queue::QueueStore* store, LeaseTable* leases,
          TriggerSender* triggers, CounterSet* counters, base::Clock* clock);
  // Calls Cancel, unless Drain has ended the settler.
  ~Settler();

  // Returns at once. After the settler has ended, leaves the lease to expire.
  void Settle(Item item) ABSL_LOCKS_EXCLUDED(mu_);
  void Settle(std::vector<Item> items) ABSL_LOCKS_EXCLUDED(mu_);

  // The caller settles nothing more: settles what is queued and ends. Returns false when `deadline`
  // (Clock::Monotonic) came first; the settler then works on until Cancel.
  bool Drain(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);

  // The end of a listener: waits for its work (`await_work` as Drain) and drains, within `grace`,
  // which ends at `deadline`. Towards its end a call that fails is not repeated, and after the
  // first one that the store does not answer the rest is left to the ends of its leases:
  // Unavailable. DeadlineExceeded: that was not enough, either, and the settler was cancelled.
  absl::Status Finish(absl::FunctionRef<bool(absl::Duration deadline)> await_work,
                      absl::Duration deadline, absl::Duration grace)
      ABSL_LOCKS_EXCLUDED(mu_, join_mu_);

  // Stops retrying, leaves unsettled leases to expire, and waits for the thread to end.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_, join_mu_);

 private:
  using Items = std::vector<Item>;
  // The part of a batch that one verb settles, and the call for it.
  using Chosen = std::vector<Item*>;
  using Call = absl::FunctionRef<absl::StatusOr<std::vector<absl::Status>>(
      const Chosen&, const std::vector<queue::Receipt>&)>;

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool Take(Items& batch) ABSL_LOCKS_EXCLUDED(mu_);
  void GatherLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsEnoughLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MoreWaits() const ABSL_LOCKS_EXCLUDED(mu_);
  void Work(Items& batch) ABSL_LOCKS_EXCLUDED(mu_);
  void DropLost(Items& batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether a call that ended so tells that no further one is worth its time.
  void NoteAnswer(const absl::Status& status);

  void PutOutputs(Items& batch) ABSL_LOCKS_EXCLUDED(mu_);
  void PutChunk(std::vector<queue::NewMessage> outputs, const Chosen& of);
  void GiveBackInstead(Item& item);

  void SettlePartition(int partition, const Chosen& items) ABSL_LOCKS_EXCLUDED(mu_);
  // Pins the items, calls `call` for those with a live lease, and counts the results.
  void SettleBy(const Chosen& items, int64_t ListenerCounters::*transaction, Call call)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Delete(int partition, const Chosen& items);
  void DeadLetter(int partition, const Chosen& items);
  void GiveBack(int partition, const Chosen& items);
  queue::Cause CauseOf(const Item& item) const;
  void AnnounceGivenBack(const queue::QueueId& queue, const Chosen& items);
  void Count(Item& item, const absl::Status& status);
  void TellWhenVisible(const Item& item);
  void Abandon(Item& item);

  const SettlerOptions options_;
  queue::QueueStore* const store_;           // not owned
  LeaseTable* const leases_;                 // not owned
  TriggerSender* const triggers_;            // not owned
  CounterSet* const counters_;               // not owned
  base::Clock* const clock_;                 // not owned
  std::optional<BurstAnnouncer> announcer_;  // used only by the thread
  base::RetryPolicy retry_;
  std::stop_source no_retries_;
  std::stop_source cancelled_;
  bool store_is_away_ = false;  // and nothing is repeated; used only by the thread while it runs

  mutable base::Mutex mu_;
  base::CondVar work_;
  base::CondVar ended_cv_;
  Items waiting_ ABSL_GUARDED_BY(mu_);
  bool gathering_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;

  base::Mutex join_mu_;
  std::thread thread_ ABSL_GUARDED_BY(join_mu_);  // last: it uses all of the above
};

}  // namespace muster::listener
