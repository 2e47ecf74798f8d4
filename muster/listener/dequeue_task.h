// SPDX-License-Identifier: Apache-2.0

// DequeueTask: one reader thread of a listener; and TaskEnvironment, which its tasks share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/random.h"
#include "muster/base/retry.h"
#include "muster/listener/away_spacing.h"
#include "muster/listener/claim_tuning.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/listener.h"
#include "muster/listener/metrics.h"
#include "muster/listener/settler.h"
#include "muster/listener/subscriber.h"
#include "muster/listener/supervisor.h"
#include "muster/listener/task_roster.h"
#include "muster/listener/verdict.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// What happens with an error of a listener that nothing else is done about.
void LogListenerError(const absl::Status& status);

// The objects that all dequeue tasks of a listener share. None of the pointers is owned; all
// outlive the tasks. Each is thread-safe.
struct TaskEnvironment {
  const ListenerOptions* options;
  VerdictRules rules;
  queue::QueueStore* store;
  base::Clock* clock;
  base::RetryPolicy* retry;
  VisibilityTuner* visibility = nullptr;
  LeaseTable* leases;
  Settler* settler;
  TaskRoster* roster = nullptr;
  ClaimSizer* sizer;
  CounterSet* counters;
  WorkMeter* meter;
  AwaySpacing* away;
  Supervisor* supervisor = nullptr;
  std::stop_token stopping;

  std::function<void(const absl::Status&)> on_error;
  // Decides for a task that found the queue empty `idle_count` times; the interval is for tasks
  // that stay.
  std::function<IdleDecision(int idle_count)> queue_empty = nullptr;  // the default
  std::function<absl::StatusOr<std::unique_ptr<Subscriber>>()> subscribers;
  // Whether the listener waits without a task: then a task that finds the queue empty leaves at
  // once.
  std::function<bool()> waits_without_task = nullptr;
  // A task left because its look, which began at `looked_at`, found the queue empty.
  std::function<void(absl::Duration looked_at)> on_empty_leave = nullptr;

  // Decides first about what is to be settled: takes out what it keeps. Empty: keeps nothing.
  std::function<void(std::vector<Settler::Item>*)> keep = nullptr;

  // Settings that may change while the listener runs.
  std::atomic<int>* dequeue_batch_size;
  std::function<base::IdleBackoffOptions()> idle_intervals = nullptr;
};

// A message that came without a look.
struct ArrivedMessage {
  int partition = 0;
  queue::Message message;
  absl::Duration at;  // monotonic
};

// DequeueTask: one reader thread of a listener.
//
//   look over all partitions ─ messages ─► DeliveryBatch ─► look again
//        │ all empty in a row
//        ▼
//   QueueEmpty(idle count) ─► sleep, until woken or the interval is over ─► look again
//        └─► leave, if the roster lets it

// Used by its own thread only.
class DequeueTask {
 public:
  // The task is already on the roster. `environment` is not owned. Tasks begin at different
  // partitions, so that they do not all receive from the same one.
  DequeueTask(const TaskEnvironment& environment, int first_partition);

  // Returns once the task is off the roster: dismissed, idle for long, or without a subscriber.
  // `first`: what the task works on before it looks.
  void Run(std::optional<ArrivedMessage> first = std::nullopt);

 private:
  enum class Look { kWorked, kEmpty, kFailed, kStopping };

  bool MakeSubscriber();
  absl::StatusOr<std::unique_ptr<Subscriber>> AskFactory() const;
  // True: look again. False: the task has left the roster.
  bool FollowUp(Look look, uint64_t seen_wakes);
  Look LookForWork();
  // Returns how long the store leases `messages`: as long as `asked`, or as its own settings say.
  absl::Duration SpanOf(const std::vector<queue::Message>& messages, absl::Duration asked) const;
  absl::StatusOr<std::vector<queue::Message>> Receive(int partition,
                                                      const queue::ReceiveOptions& wanted);
  void Work(std::vector<LeasePtr> leases, absl::Duration asked_at);
  void WorkOn(ArrivedMessage arrived);
  void GiveBack(const ArrivedMessage& arrived);
  void AskForHelp(bool counted_on);
  bool RestAfterEmpty(uint64_t seen_wakes);
  base::IdleBackoff Backoff() const;

  const TaskEnvironment& environment_;
  const int partitions_;
  int next_partition_;
  int idle_count_ = 0;
  int failures_ = 0;          // looks that failed, in a row
  absl::Duration looked_at_;  // monotonic; when the last look began
  absl::Duration helped_at_;  // when it last asked for a check of the number of tasks
  base::UniformSource uniform_;
  std::unique_ptr<Subscriber> subscriber_;
};

}  // namespace muster::listener
