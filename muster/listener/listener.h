// QueueListener: the reader of a queue's partitions in one process (req. 27–41).
//
// A listener runs dequeue tasks. Each task: receive a batch → Subscriber → settle, until the queue
// is empty; then it backs off and leaves. A trigger, or the slow safety check, starts tasks again by
// a rule of the queue's depth. While it is idle a listener in push mode has no task and makes no
// storage transaction but one safety check per interval; in pull mode exactly one task keeps polling.
//
//      trigger / safety check ──► QueueWorkDetected ──► start (n − active) tasks
//                                                         │
//      ┌──────────────────────── dequeue task ◄───────────┘
//      │ Receive ─► LeaseKeeper ─► Subscriber ─► Settler ─► Put outputs, Delete   (own thread, group commit)
//      └─ empty ─► QueueEmpty(idle_count) ─► sleep, or leave
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/queue_store.h"
#include "muster/trigger/trigger_bus.h"

namespace muster::listener {

class QueueListener;

// Point-in-time state of a listener (the papers' CloudQueueListenerInfo, req. 30).
struct ListenerInfo {
  int64_t current_queue_depth = 0;  // approximate: ready messages over all partitions
  int active_dequeue_tasks = 0;     // started and not yet ended
  int total_dequeue_tasks = 0;      // the most that were active at a time
  int64_t unsettled_messages = 0;   // leased here and not yet settled
};

// What QueueEmpty answers (req. 31): leave, or sleep for `delay` and try again.
struct IdleDecision {
  bool stop = false;
  absl::Duration delay = absl::ZeroDuration();
};

// The host's to replace. Called without locks held, from dequeue tasks (several at a time).
struct ListenerEvents {
  // The queue was empty `idle_count` times running for this task. Default: back-off of req. 36, and
  // leaving as `mode` says (req. 37). The default rule lets the last poller of a pull listener stay,
  // whatever the interleaving (D2); a host's own answer `stop` is obeyed.
  std::function<IdleDecision(const QueueListener&, int idle_count)> queue_empty;
  // Work came after idleness, or a trigger arrived. Default: start tasks by `work_rule`.
  std::function<void(QueueListener&)> queue_work_detected;
  // A storage call failed after its retries. Default: log.
  std::function<void(const absl::Status&)> on_error;
  // Every task has ended after Stop.
  std::function<void()> on_completed;
};

enum class DispatchMode {
  kPull,  // one poller stays
  kPush,  // none stays; triggers start tasks, the safety check guards against a lost one (D3)
};

// depth → number of dequeue tasks wanted; at least 1. See WorkRules in work_rule.h for the default
// (req. 38).
using WorkRule = std::function<int(int64_t depth)>;

struct ListenerOptions {
  std::vector<queue::QueueId> partitions;      // at least one; tasks visit all, each from another start
  std::optional<queue::QueueId> output_queue;  // where Settlement::outputs go
  std::string instance = "local";              // role instance id: events' `from`, causes' holder
  DispatchMode mode = DispatchMode::kPush;

  int dequeue_batch_size = queue::kMaxReceive;  // the most one task claims at a time
  // A task claims what it will start within about this long, by its measured service time, so that
  // a busy worker holds nothing that another could start.
  absl::Duration claim_horizon = absl::Milliseconds(100);
  absl::Duration visibility = absl::Seconds(30);
  int max_attempts = 5;

  absl::Duration minimum_idle_interval = absl::Milliseconds(10);
  absl::Duration maximum_idle_interval = absl::Seconds(1);
  absl::Duration safety_check_interval = absl::Seconds(30);  // ± 20%, so that processes spread

  WorkRule work_rule;                 // empty: the default of work_rule.h
  int max_dequeue_tasks = 100;        // never more, whatever rule or StartListener ask
  int max_unsettled_messages = 1024;  // back-pressure: tasks wait for the settler beyond this
};

// Thread-safe.
class QueueListener {
 public:
  // Makes the subscriber of one dequeue task.
  using SubscriberFactory = std::function<absl::StatusOr<std::unique_ptr<Subscriber>>()>;

  // None of the pointers is owned; all must outlive the listener. `bus` may be null (pull mode).
  // InvalidArgument when an option is out of its bounds.
  static absl::StatusOr<std::unique_ptr<QueueListener>> Create(ListenerOptions options,
                                                               ListenerEvents events,
                                                               SubscriberFactory subscribers,
                                                               queue::QueueStore* store,
                                                               trigger::TriggerBus* bus,
                                                               base::Clock* clock);

  // Stop()s first.
  virtual ~QueueListener() = default;

  // Subscribes to triggers and runs one safety check at once, so that work that is there is found.
  virtual absl::Status Start() = 0;

  // Starts `thread_count` more dequeue tasks, up to max_dequeue_tasks (req. 29). InvalidArgument for
  // thread_count ≤ 0; FailedPrecondition after Stop.
  virtual absl::Status StartListener(int thread_count) = 0;

  virtual ListenerInfo QueryState() const = 0;

  // Stops receiving, asks subscribers to finish, settles what is in hand and releases the rest; waits
  // for all of it, at most `grace`, after which unsettled leases are left to expire. Safe to call
  // twice and before Start. DeadlineExceeded when the grace ran out.
  virtual absl::Status Stop(absl::Duration grace) = 0;

  // Parks a listener: tasks finish what they have and leave; triggers are ignored until Resume.
  virtual void Pause() = 0;
  virtual void Resume() = 0;

  // Changes what may change while running (req. 40). Values out of bounds: InvalidArgument.
  virtual absl::Status SetDequeueBatchSize(int messages) = 0;
  virtual absl::Status SetIdleIntervals(absl::Duration minimum, absl::Duration maximum) = 0;
};

}  // namespace muster::listener
