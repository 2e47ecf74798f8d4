// SPDX-License-Identifier: Apache-2.0

// OrderedListener: the reader of the partitions that a process owns, in the order of each key.
//
//   owned partition ─ Reclaim ─► Receive ─► KeyDispatcher ─► workers ─► Settler
//        ▲                                    │      ▲          │
//        └── again, when an order is in doubt ┘      └─ retry ──┘
//
// Of each key one message is in work at a time: the next one begins when it is settled, that is
// when its outputs are durable and it is deleted, or set aside as poison. A message that is to be
// retried stays here, with its lease, and holds up its own key alone.
//
// No other reads an owned partition. Whenever it is unknown what comes next, since the partition
// has just become this process's, or a lease was lost, or a settlement has failed, the listener
// lets the running messages end, reclaims the partition, and begins again at its head.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/random.h"
#include "muster/base/retry.h"
#include "muster/bus/trigger_bus.h"
#include "muster/listener/away_spacing.h"
#include "muster/listener/claim_tuning.h"
#include "muster/listener/dequeue_task.h"
#include "muster/listener/key_dispatcher.h"
#include "muster/listener/key_holds.h"
#include "muster/listener/lease_renewer.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/listener.h"
#include "muster/listener/metrics.h"
#include "muster/listener/settler.h"
#include "muster/listener/supervisor.h"
#include "muster/listener/task_roster.h"
#include "muster/listener/trigger_sender.h"

namespace muster::listener {

// What the listener holds of a partition at most: beyond that it receives nothing more from it
// until something is settled. A key that waits for a retry holds this much up behind it, so that
// the other keys of the partition are seen.
inline constexpr size_t kMaxHeldMessages = 4096;
inline constexpr size_t kMaxHeldBytes = size_t{64} << 20;

// The key of a message; nullopt: it has none, and is in no order with others.
using KeyOf = std::function<std::optional<std::string>(const queue::Message&)>;

// Thread-safe. Owns no partition at first.
class OrderedListener final : public QueueListener {
 public:
  // As QueueListener::Create. Of `options`, those that say how many tasks are wanted and how an
  // idle one looks for work do not count: a worker is started for a key that can run, up to
  // max_dequeue_tasks, and an idle listener looks once in a safety check interval, unless a trigger
  // says that there is work. `key_of` is called by one thread.
  static absl::StatusOr<std::unique_ptr<OrderedListener>> Create(
      ListenerOptions options, KeyOf key_of, SubscriberFactory subscribers,
      queue::QueueStore* store, bus::TriggerBus* bus, base::Clock* clock);
  ~OrderedListener() override;

  // A message with a key that is given up holds its key from now on, in `holds`, which is not
  // owned: the later ones of the key do not begin until it is not held any more. Set it before
  // Start; null, as at first: they go on. An operator who releases a key sends the trigger of its
  // queue.
  void SetHolds(KeyHolds* holds) { holds_ = holds; }
  // Called once, by the first Stop, when nothing runs any more and before it returns: on the thread
  // that stops. Set it before Start.
  void SetOnStopped(std::function<void()> on_stopped) { on_stopped_ = std::move(on_stopped); }
  // As ListenerEvents::on_no_task, but called with a lock held: it must not call the listener. Set
  // it before Start.
  void SetOnNoTask(std::function<void(const absl::Status&)> on_no_task) {
    on_no_task_ = std::move(on_no_task);
  }

  // The partition is this process's alone: reads it, from its head.
  void Own(int partition) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes nothing more of the partition and lets the running messages end; then calls `drained`, on
  // any thread.
  void Drain(int partition, std::function<void()> drained) ABSL_LOCKS_EXCLUDED(mu_);
  // The partition is not this process's any more: what still runs has lost its lease.
  void Disown(int partition) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status Start() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status StartListener(int thread_count) override ABSL_LOCKS_EXCLUDED(mu_);
  ListenerInfo QueryState() const override ABSL_LOCKS_EXCLUDED(mu_);
  ListenerCounters counters() const override { return counters_.Snapshot(); }
  ListenerLoad Load() const override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Stop(absl::Duration grace) override ABSL_LOCKS_EXCLUDED(stop_mu_, mu_);
  void Pause() override ABSL_LOCKS_EXCLUDED(mu_);
  void Resume() override ABSL_LOCKS_EXCLUDED(mu_);
  ListenerPhase phase() const override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SetDequeueBatchSize(int messages) override;
  absl::Status SetIdleIntervals(absl::Duration minimum, absl::Duration maximum) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SetMaxDequeueTasks(int tasks) override ABSL_LOCKS_EXCLUDED(mu_);
  ListenerOptions options() const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  enum class Reading { kAway, kReclaim, kCollect, kInOrder, kDraining };
  // A held key, by the item that may begin.
  struct HeldFor {
    std::string item;
    bool is_dead = false;     // it is a dead letter, or was when the partition was reclaimed
    bool was_seen = false;    // it was received since then
    bool has_passed = false;  // it is settled: the key is to be released
  };
  struct Holds {
    absl::flat_hash_map<std::string, HeldFor> keys;  // at most what KeyHolds allows
    bool reread = false;                             // others may have released some
    bool any_passed = false;
    bool gave_back = false;  // messages of held keys, since the partition was reclaimed
  };
  struct Partition {
    Reading reading = Reading::kAway;
    int64_t term = 0;    // grows whenever what runs is of no matter any more
    uint64_t below = 0;  // kCollect: the positions that come first
    std::vector<HeldMessage> collected;
    uint64_t next = 0;       // behind the position that was taken in last
    size_t busy = 0;         // messages with a subscriber, of any term
    size_t giving_back = 0;  // messages of held keys, of any term
    Holds holds;
    uint64_t triggers = 0;   // that have come
    absl::Duration look_at;  // monotonic; when to receive next
    int empty_looks = 0;     // or failed ones, in a row
    std::function<void()> drained;
  };
  // A message that runs: where its end is to be told.
  struct Running {
    int partition = 0;
    int64_t term = 0;
    LeasePtr lease;
    std::string key;
    uint64_t position = 0;
  };

  OrderedListener(ListenerOptions options, KeyOf key_of, SubscriberFactory subscribers,
                  queue::QueueStore* store, bus::TriggerBus* bus, base::Clock* clock);
  TaskEnvironment MakeEnvironment(SubscriberFactory subscribers);
  void OnTrigger(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(mu_);

  // The thread that reads.
  void Read() ABSL_LOCKS_EXCLUDED(mu_);
  // The partition that is to be looked at now; nullopt: the listener stops.
  std::optional<int> AwaitPartition() ABSL_LOCKS_EXCLUDED(mu_);
  bool MayLookLocked(int place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Look(int place) ABSL_LOCKS_EXCLUDED(mu_);
  void Reclaim(int place, int64_t term) ABSL_LOCKS_EXCLUDED(mu_);
  void Receive(int place, int64_t term) ABSL_LOCKS_EXCLUDED(mu_);
  // Turns `places` reserved ones into the leases of the messages.
  std::vector<HeldMessage> Hold(int place, std::vector<queue::Message> messages,
                                absl::Duration asked_at, int places);
  // What one look has brought; nothing: the partition is empty.
  void TakeInLocked(int place, std::vector<HeldMessage> held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Looks again later: the partition was empty, or did not answer.
  void RestLocked(Partition* partition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Takes out of hand what waits of the partition.
  void DiscardWaitingLocked(int place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Discard(const std::vector<HeldMessage>& messages);
  // Begins again at the head, once nothing runs any more.
  void RestartLocked(int place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // If nothing of the partition runs any more: calls its `drained`, and wakes the reader.
  void NoteEnd(int place) ABSL_LOCKS_EXCLUDED(mu_);

  // The workers. One that is started, or has no messages, counts as idle.
  void StartWorkersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Work() ABSL_LOCKS_EXCLUDED(mu_);
  // nullptr: the listener stops, and has no messages for this worker.
  std::unique_ptr<Subscriber> MakeSubscriber() ABSL_LOCKS_EXCLUDED(mu_);
  // Of one partition. Empty: the worker leaves.
  std::vector<HeldMessage> AwaitMessages() ABSL_LOCKS_EXCLUDED(mu_);
  size_t ShareLocked(size_t ready) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteRunningLocked(const std::vector<HeldMessage>& messages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of messages that a worker is done with.
  void KeepRetries(std::vector<Settler::Item>* items) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the message stays here, to run again.
  bool Keeps(const Settler::Item& item, const Running& running) ABSL_LOCKS_EXCLUDED(mu_);
  void OnSettled(const Running& running, bool is_deleted, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Held keys (ordered_listener_holds.cc); nothing without `holds_`.
  // False: they are not known yet, and the partition is looked at again later.
  bool ReadHolds(int place, int64_t term) ABSL_LOCKS_EXCLUDED(mu_);
  // Finds what others have released.
  void RereadHolds(int place, int64_t term) ABSL_LOCKS_EXCLUDED(mu_);
  void ReleasePassed(int place, int64_t term) ABSL_LOCKS_EXCLUDED(mu_);
  void LetGoLocked(int place, const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Withholds(const HeldMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives those back that may not begin.
  void WithholdLocked(int place, std::vector<HeldMessage>* messages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveBackLocked(int place, std::vector<HeldMessage> messages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsHeldLocked(int place, const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The partition holds nothing more that can be received.
  void NoteEmptyLocked(int place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // If the message is given up: holds its key first, or else keeps the message.
  void HoldIfDead(Settler::Item* item, const Running& running) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteDeletedLocked(const Running& running) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status StopOnce(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mu_);
  void StopReading() ABSL_LOCKS_EXCLUDED(mu_);
  // False: `deadline` came first.
  bool AwaitWorkers(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);

  const ListenerOptions options_;
  const KeyOf key_of_;
  queue::QueueStore* const store_;  // not owned
  bus::TriggerBus* const bus_;      // not owned; may be null
  base::Clock* const clock_;        // not owned
  const std::function<void(const absl::Status&)> on_error_;
  absl::flat_hash_map<queue::QueueId, int> place_of_;  // of each partition
  std::function<void()> on_stopped_;                   // may be empty
  std::function<void(const absl::Status&)> on_no_task_;
  KeyHolds* holds_ = nullptr;  // not owned; may be null

  mutable CounterSet counters_;
  WorkMeter meter_;
  AwaySpacing away_;
  std::stop_source stopping_;
  std::atomic<int> dequeue_batch_size_;
  base::RetryPolicy retry_;
  ClaimSizer sizer_;
  LeaseTable leases_;
  TriggerSender triggers_;
  mutable DepthGauge gauge_;

  mutable base::Mutex mu_;
  base::CondVar read_;   // for the thread that reads
  base::CondVar ready_;  // for workers
  base::CondVar left_;   // a worker has left
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_reading_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  int max_workers_ ABSL_GUARDED_BY(mu_);
  int workers_ ABSL_GUARDED_BY(mu_) = 0;
  int idle_workers_ ABSL_GUARDED_BY(mu_) = 0;
  int most_workers_ ABSL_GUARDED_BY(mu_) = 0;
  int next_partition_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration gauge_at_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  base::IdleBackoffOptions idle_ ABSL_GUARDED_BY(mu_);
  base::UniformSource uniform_ ABSL_GUARDED_BY(mu_);
  std::vector<Partition> partitions_ ABSL_GUARDED_BY(mu_);
  KeyDispatcher dispatcher_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<const Lease*, Running> running_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_ ABSL_GUARDED_BY(mu_);

  const TaskEnvironment environment_;
  Settler settler_;
  LeaseRenewer renewer_;
  std::thread reader_;
  TaskThreads threads_;

  base::Mutex stop_mu_;
  bool stop_called_ ABSL_GUARDED_BY(stop_mu_) = false;
  absl::Status stop_status_ ABSL_GUARDED_BY(stop_mu_);
};

}  // namespace muster::listener
