// SPDX-License-Identifier: Apache-2.0

// ElasticListener: the implementation of QueueListener. It connects the parts, turns wake-ups into
// dequeue tasks, and stops everything in order.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/retry.h"
#include "muster/listener/away_spacing.h"
#include "muster/listener/claim_tuning.h"
#include "muster/listener/dequeue_task.h"
#include "muster/listener/lease_renewer.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/listener.h"
#include "muster/listener/metrics.h"
#include "muster/listener/open_receives.h"
#include "muster/listener/settler.h"
#include "muster/listener/supervisor.h"
#include "muster/listener/task_roster.h"
#include "muster/listener/trigger_sender.h"

namespace muster::listener {

// Thread-safe.
class ElasticListener final : public QueueListener {
 public:
  // `options` are valid. Starts the supervisor, the LeaseRenewer and the settler, all asleep.
  ElasticListener(ListenerOptions options, ListenerEvents events, SubscriberFactory subscribers,
                  queue::QueueStore* store, bus::TriggerBus* bus, base::Clock* clock);
  ~ElasticListener() override;

  absl::Status Start() override ABSL_LOCKS_EXCLUDED(phase_mu_);
  absl::Status StartListener(int thread_count) override ABSL_LOCKS_EXCLUDED(phase_mu_);
  ListenerInfo QueryState() const override;
  ListenerCounters counters() const override { return counters_.Snapshot(); }
  ListenerLoad Load() const override;
  absl::Status Stop(absl::Duration grace) override ABSL_LOCKS_EXCLUDED(stop_mu_, phase_mu_);
  void Pause() override ABSL_LOCKS_EXCLUDED(phase_mu_);
  void Resume() override ABSL_LOCKS_EXCLUDED(phase_mu_);
  ListenerPhase phase() const override ABSL_LOCKS_EXCLUDED(phase_mu_);
  absl::Status SetDequeueBatchSize(int messages) override;
  absl::Status SetIdleIntervals(absl::Duration minimum, absl::Duration maximum) override
      ABSL_LOCKS_EXCLUDED(settings_mu_);
  absl::Status SetMaxDequeueTasks(int tasks) override;
  ListenerOptions options() const override ABSL_LOCKS_EXCLUDED(settings_mu_);

 private:
  enum class Phase { kNew, kStarted, kStopping, kStopped };

  void OnSettled(const Lease& lease, bool in_time) ABSL_LOCKS_EXCLUDED(phase_mu_);
  TaskEnvironment MakeEnvironment(SubscriberFactory subscribers);
  base::IdleBackoffOptions IdleIntervals() const ABSL_LOCKS_EXCLUDED(settings_mu_);

  void LeaveToOthers(const queue::QueueId& queue, const std::string& wanted, absl::Duration delay)
      ABSL_LOCKS_EXCLUDED(phase_mu_);
  void OnTrigger(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(phase_mu_);
  void OnWake(WakeReason reason) ABSL_LOCKS_EXCLUDED(phase_mu_);
  void WakeIdle(WakeReason reason) ABSL_LOCKS_EXCLUDED(phase_mu_);
  void WakeBusy(WakeReason reason) ABSL_LOCKS_EXCLUDED(phase_mu_);
  void RaiseWorkDetected() ABSL_LOCKS_EXCLUDED(phase_mu_);
  void FollowDepth(const Depth& depth) ABSL_LOCKS_EXCLUDED(phase_mu_);
  void Rescale(const Depth& depth) ABSL_LOCKS_EXCLUDED(phase_mu_);
  bool KeepsPoller() const;

  // Of open receives, on threads of the engine.
  bool OnMessage(int partition, queue::Message message) ABSL_LOCKS_EXCLUDED(phase_mu_);
  void OnReceiveEnd(const absl::Status& why);
  // Opens receives if there is no task; `retry`: also those that an error has ended.
  void WaitIfIdle(bool retry) ABSL_LOCKS_EXCLUDED(phase_mu_);

  void StartTasks(int wanted) ABSL_LOCKS_EXCLUDED(phase_mu_);
  // For one task that is on the roster.
  absl::Status StartTask(int first_partition, std::shared_ptr<ArrivedMessage> first);
  // After those that have no thread have left the roster.
  void TellNotStarted(const absl::Status& why);
  void JoinTasks() ABSL_LOCKS_EXCLUDED(phase_mu_);

  absl::Status StopOnce(absl::Duration grace) ABSL_LOCKS_EXCLUDED(phase_mu_);
  void StopSenders() ABSL_LOCKS_EXCLUDED(phase_mu_);
  void ReleaseUnbegun() ABSL_LOCKS_EXCLUDED(phase_mu_);

  const ListenerOptions options_;
  const ListenerEvents events_;
  queue::QueueStore* const store_;  // not owned
  bus::TriggerBus* const bus_;      // not owned; may be null
  base::Clock* const clock_;        // not owned
  const std::function<void(const absl::Status&)> on_error_;
  const absl::flat_hash_set<queue::QueueId> partitions_;

  mutable CounterSet counters_;
  WorkMeter meter_;
  AwaySpacing away_;
  std::stop_source stopping_;
  std::atomic<int> dequeue_batch_size_;
  std::atomic<int> max_dequeue_tasks_;
  std::atomic<int> next_first_partition_ = 0;
  base::RetryPolicy retry_;
  ClaimSizer sizer_;
  TaskRoster roster_;
  VisibilityTuner visibility_;
  LeaseTable leases_;
  TriggerSender triggers_;
  Handover handover_;
  mutable base::Mutex settings_mu_;
  base::IdleBackoffOptions idle_intervals_ ABSL_GUARDED_BY(settings_mu_);
  mutable DepthGauge gauge_;
  const TaskEnvironment environment_;
  // These have threads, which use all of the above.
  Supervisor supervisor_;
  Settler settler_;
  LeaseRenewer renewer_;
  OpenReceives open_receives_;
  std::atomic<int> failed_receives_ = 0;  // in a row
  // Monotonic, in nanoseconds.
  std::atomic<int64_t> pushed_at_ = 0;  // when the last trigger arrived
  std::atomic<int64_t> looked_at_ = 0;  // when the last look began that found the queue empty

  mutable base::Mutex phase_mu_;
  Phase phase_ ABSL_GUARDED_BY(phase_mu_) = Phase::kNew;
  bool paused_ ABSL_GUARDED_BY(phase_mu_) = false;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_ ABSL_GUARDED_BY(phase_mu_);

  TaskThreads threads_;

  base::Mutex stop_mu_;  // held during the first Stop; later calls wait for its result
  bool stopped_ ABSL_GUARDED_BY(stop_mu_) = false;
  absl::Status stop_status_ ABSL_GUARDED_BY(stop_mu_);
};

}  // namespace muster::listener
