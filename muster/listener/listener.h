// SPDX-License-Identifier: Apache-2.0

// QueueListener: the reader of a queue in one process, its options and its work rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/bus/trigger_bus.h"
#include "muster/listener/metrics.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// Work rule: depth → number of dequeue tasks wanted, at least 1. A negative depth means
// "unknown". The host may replace the rule, or describe one as text that is managed outside the
// program. Thread-safe.
using WorkRule = std::function<int(int64_t depth)>;

// The number of tasks for a queue of unknown depth.
inline constexpr int kFallbackTasks = 1;
inline constexpr int kMaxRuleSteps = 64;  // a rule longer than this is a mistake
inline constexpr int kMaxRuleTasks = 10000;

// < 100 → 10, 100–999 → 50, ≥ 1000 → 100; unknown → 1.
WorkRule DefaultWorkRule();

// Parses steps of "min_depth:tasks", separated by commas, with depths ascending from 0. The default
// rule is "0:10,100:50,1000:100". InvalidArgument names the invalid step.
absl::StatusOr<WorkRule> ParseWorkRule(absl::string_view text);

// QueueListener: the reader of a queue's partitions in one process.
//
// A listener runs dequeue tasks. Each task: receive a batch → Subscriber → settle, until the queue
// is empty; then it backs off and leaves. A trigger, or the slow safety check, starts tasks again,
// as many as the work rule says for the depth of the queue. An idle listener in push mode has no
// task and makes no storage transaction except one safety check per interval. In pull mode exactly
// one task keeps polling.
//
// On an engine that can wait (Traits::long_poll), an idle listener in push mode also keeps receives
// open (open_receives.h), one for each two intervals, and a message that comes by one starts a task
// at once. There a task leaves as soon as it finds the queue empty.
//
//      trigger / safety check ──► QueueWorkDetected ──► start (n − active) tasks
//                                                         │
//      ┌──────────────────────── dequeue task ◄───────────┘
//      │ Receive ─► LeaseRenewer ─► Subscriber ─► Settler ─► Put outputs, Delete
//      │                                          (own thread, group commit)
//      └─ empty ─► QueueEmpty(idle_count) ─► sleep, or leave
//
// Read on: task_roster.h (which task may leave), lease_table.h (the leased messages), settler.h
// (how a lease ends).

class QueueListener;

// Point-in-time state of a listener (the papers' CloudQueueListenerInfo).
struct ListenerInfo {
  int64_t current_queue_depth = 0;  // approximate: ready messages over all partitions
  int active_dequeue_tasks = 0;     // started and not yet ended
  int total_dequeue_tasks = 0;      // the most that were active at once
  int64_t unsettled_messages = 0;   // leased by this listener, or about to be, and not yet settled
};

// A partition as the listener last saw it when it looked for work; approximate.
struct PartitionSeen {
  queue::QueueId queue;
  int64_t ready = 0;
  absl::Duration oldest_age;
  int64_t leased_messages = 0;  // here, now
};

// How busy a listener is.
struct ListenerLoad {
  int max_dequeue_tasks = 0;
  WorkTimes times;
  std::vector<PartitionSeen> partitions;  // as in the options
};

// What QueueEmpty answers: leave, or sleep for `delay` and try again.
struct IdleDecision {
  bool stop = false;
  absl::Duration delay = absl::ZeroDuration();
};

// Events that the host may replace. Called without locks held; none may call Stop.
struct ListenerEvents {
  // The queue was empty `idle_count` times running for this task. Default: that of IdleBackoff,
  // and leaving as `mode` says. The default rule never lets the last poller of a pull
  // listener leave, in any interleaving. The listener obeys a `stop` from the host, unless a
  // trigger has come since the task looked. Called from dequeue tasks, several at a time.
  std::function<IdleDecision(const QueueListener&, int idle_count)> queue_empty;
  // Work came after idleness, or tasks have been busy for a while, or a trigger arrived,
  // or a check found work. Default: start tasks by `work_rule`, but never more than there are ready
  // messages. Called from the supervisor of the listener, one call at a time.
  std::function<void(QueueListener&)> queue_work_detected;
  // A storage call failed after its retries, or a subscriber could not be made. Called from any
  // thread. Default: log.
  std::function<void(const absl::Status&)> on_error;
  // Work waits, no task runs, and the system has no thread for one (ResourceExhausted). The
  // listener tries again with the next trigger or check. Called from any thread. Default: on_error.
  std::function<void(const absl::Status&)> on_no_task;
  // Every task has ended after Stop. Called on the thread that stops.
  std::function<void()> on_completed;
};

enum class DispatchMode {
  kPull,  // one poller stays
  kPush,  // none stays; triggers start tasks, the safety check covers lost triggers
};

struct ListenerOptions {
  std::vector<queue::QueueId> partitions;  // at least one; tasks visit all, each from another start
  std::optional<queue::QueueId> output_queue;  // where Settlement::outputs go
  OutputPacker pack_outputs;                   // absent: each output is a message of its own
  std::string instance = "local";  // role instance id: `from` of events, holder of causes
  DispatchMode mode = DispatchMode::kPush;

  int dequeue_batch_size = queue::kMaxReceive;  // the most one task claims at a time
  // A task claims only the messages that it expects to start within this time, by its measured
  // service time. So a busy worker holds nothing that another worker could start.
  absl::Duration claim_horizon = absl::Milliseconds(100);
  // A lease lasts three times as long as nearly all messages are held, and longer after a lease was
  // lost, but at least `visibility` and at most `maximum_visibility`.
  absl::Duration visibility = absl::Seconds(30);
  absl::Duration maximum_visibility = absl::Minutes(15);  // the larger of the two counts
  // While other messages are in work, settlements wait this long to be committed together.
  absl::Duration settle_linger = absl::Milliseconds(2);
  int max_attempts = 5;
  // Delay of a retry when the handler asked for none: doubles with each attempt, ± 20%. The minimum
  // also applies to deferred messages.
  absl::Duration minimum_retry_delay = absl::Milliseconds(100);
  absl::Duration maximum_retry_delay = absl::Minutes(1);

  absl::Duration minimum_idle_interval = absl::Milliseconds(10);
  absl::Duration maximum_idle_interval = absl::Seconds(1);
  absl::Duration safety_check_interval = absl::Seconds(30);  // ± 20%, so that processes spread
  // Stop lets subscribers finish the messages that they have begun: it fires the stop tokens of
  // deliveries only after its grace is over.
  bool stops_patiently = false;

  WorkRule work_rule;           // empty: DefaultWorkRule()
  int max_dequeue_tasks = 100;  // a hard bound: the work rule and StartListener may ask for more
  int max_unsettled_messages = 1024;  // back-pressure: tasks wait for the settler beyond this
};

// Whether a listener takes messages.
enum class ListenerPhase {
  kListening,  // also before Start
  kPaused,
  kDraining,  // Stop runs: the listener finishes its messages
  kStopped,
};

// Thread-safe.
class QueueListener {
 public:
  // Makes the subscriber for one dequeue task.
  using SubscriberFactory = std::function<absl::StatusOr<std::unique_ptr<Subscriber>>()>;

  // None of the pointers is owned; all must outlive the listener. `bus` may be null (pull mode).
  // InvalidArgument when an option is out of its bounds.
  static absl::StatusOr<std::unique_ptr<QueueListener>> Create(
      ListenerOptions options, ListenerEvents events, SubscriberFactory subscribers,
      queue::QueueStore* store, bus::TriggerBus* bus, base::Clock* clock);

  // Calls Stop with an infinite grace.
  virtual ~QueueListener() = default;

  // Subscribes to triggers and runs one safety check at once, to find work that is already there. A
  // pull listener gets its poller. FailedPrecondition after Stop or on a second call; otherwise the
  // error of the bus.
  virtual absl::Status Start() = 0;

  // Starts `thread_count` more dequeue tasks, up to max_dequeue_tasks. InvalidArgument
  // for thread_count ≤ 0; FailedPrecondition while paused and after Stop. Works also before Start.
  virtual absl::Status StartListener(int thread_count) = 0;

  // Asks the store for the depth of each partition. A partition that does not answer counts as
  // empty.
  virtual ListenerInfo QueryState() const = 0;
  virtual ListenerCounters counters() const = 0;
  // Makes no call to the store, so it can be called every few seconds.
  virtual ListenerLoad Load() const = 0;

  // Stops receiving, fires the stop tokens (with stops_patiently, those of begun messages only
  // after the grace), releases all messages that have not begun, and settles the messages that
  // subscribers finish within `grace`. DeadlineExceeded when the grace ran out: leases that are
  // still unsettled are left to expire. Either way no thread of the listener is left when Stop
  // returns, so a subscriber that ignores its stop token delays it. May be called twice and before
  // Start; not from within a subscriber or an event.
  virtual absl::Status Stop(absl::Duration grace) = 0;

  // Pauses the listener: tasks finish their batch and leave. Triggers and checks are ignored until
  // Resume, which looks for work at once.
  virtual void Pause() = 0;
  virtual void Resume() = 0;
  virtual ListenerPhase phase() const = 0;

  // Changes options of a running listener. InvalidArgument for values out of bounds.
  virtual absl::Status SetDequeueBatchSize(int messages) = 0;
  virtual absl::Status SetIdleIntervals(absl::Duration minimum, absl::Duration maximum) = 0;
  // Surplus tasks leave after their current batch.
  virtual absl::Status SetMaxDequeueTasks(int tasks) = 0;
  // The current options.
  virtual ListenerOptions options() const = 0;
};

// The bounds of a listener's options.

inline constexpr int kMaxPartitions = 1024;    // one look for work visits all of them
inline constexpr int kMaxDequeueTasks = 1000;  // each is a thread
inline constexpr int kMaxUnsettledMessages = 1 << 20;
// Below this the renewals of one lease would outweigh the work.
inline constexpr absl::Duration kMinVisibility = absl::Milliseconds(100);
inline constexpr int kMaxAttemptsLimit = 1000;

// InvalidArgument, naming the option.
absl::Status ValidateListenerOptions(const ListenerOptions& options, const queue::Traits& traits);
absl::Status ValidateIdleIntervals(absl::Duration minimum, absl::Duration maximum);
absl::Status ValidateBatchSize(int messages, const queue::Traits& traits);
absl::Status ValidateMaxDequeueTasks(int tasks);

}  // namespace muster::listener
