// Settler: ends leases. One thread takes all settlements that have gathered while it was busy, and
// a moment longer while more is in hand (group commit), and
//   1. puts the outputs durably, in as few Puts as possible, and fires the output queue's trigger;
//   2. only then deletes the inputs, sets the given-up ones aside and gives the rest back: one call
//      per partition and verb.
// An input whose outputs could not be put is never deleted: it is given back, uncharged, or, if the
// store does not even take that, its lease is left to expire.
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
  OutputPacker pack_outputs;                     // as in ListenerOptions
  std::string holder;                            // who gives messages up
  absl::Duration linger = absl::ZeroDuration();  // the most that a settlement waits for others
  absl::Duration put_failed_delay = absl::Seconds(1);  // of an input whose outputs could not be put

  // All are called with no lock held. How soon a message will be visible again:
  std::function<void(absl::Duration)> on_delayed;
  // The same, of a message that is for others, and what is wanted.
  std::function<void(const queue::QueueId&, const std::string& wanted, absl::Duration)>
      on_left_to_others;
  // A lease ended: by a settlement in time, or too late.
  std::function<void(const Lease&, bool in_time)> on_settled;
  std::function<void(const absl::Status&)> on_error;
};

// Thread-safe. The queue of settlements is bounded by the leases there can be (LeaseTable).
class Settler {
 public:
  struct Item {
    LeasePtr lease;  // StartSettling answered true
    Verdict verdict;
    int attempts = 0;  // charged so far, for the cause of a poison message
  };

  // None of the pointers is owned; all outlive the settler.
  Settler(SettlerOptions options, queue::QueueStore* store, LeaseTable* leases,
          TriggerSender* triggers, CounterSet* counters, base::Clock* clock);
  // Ends as Cancel does, unless Drain has been here.
  ~Settler();

  // Returns at once. After the end: the lease is left to expire.
  void Settle(Item item);
  void Settle(std::vector<Item> items);

  // No more will come: settles what is there and ends. False when `deadline` (Clock::Monotonic)
  // came first; the settler works on until Cancel.
  bool Drain(absl::Duration deadline);

  // Stops retrying, leaves what is not settled to expire, and waits for the thread to end.
  void Cancel();

 private:
  using Items = std::vector<Item>;
  // Which part of a batch to settle, by what verb.
  using Chosen = std::vector<Item*>;
  using Call = absl::FunctionRef<absl::StatusOr<std::vector<absl::Status>>(
      const Chosen&, const std::vector<queue::Receipt>&)>;

  void Run();
  bool Take(Items& batch);
  void GatherLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsEnoughLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MoreWaits() const;
  void Work(Items& batch);
  void DropLost(Items& batch);

  void PutOutputs(Items& batch);
  void PutChunk(std::vector<queue::NewMessage> outputs, const Chosen& of);
  void GiveBackInstead(Item& item);

  void SettlePartition(int partition, const Chosen& items);
  // Pins the items, makes `call` on those that are still ours, and counts what came of each.
  void SettleBy(const Chosen& items, int64_t ListenerCounters::*transaction, Call call);
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
  std::optional<BurstAnnouncer> announcer_;  // the thread's
  base::RetryPolicy retry_;
  std::stop_source cancelled_;

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
