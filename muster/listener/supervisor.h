// SPDX-License-Identifier: Apache-2.0

// Supervisor: the thread of a listener that notices work while no dequeue task does: on a trigger,
// when a delay that the listener itself set runs out, and by a slow safety check.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/random.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/listener.h"
#include "muster/listener/metrics.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// Why a listener looks for work.
enum class WakeReason {
  kPush,       // a trigger arrived and there was no task
  kPushLater,  // the same, and a receive was open, which may have brought the message by now
  kRescale,    // work came while tasks are there: perhaps they are too few
  kScheduled,  // a message is visible by now that this listener had given back with a delay
  kAnnounce,   // the same, but the message is for others: not to be looked for, but to be announced
  kIdle,       // no task is left, or a receive that was open is over: to be opened again
  kReopen,     // the same, after an error
  kSafety,     // the slow check
};

struct SupervisorOptions {
  absl::Duration safety_check_interval = absl::Seconds(30);
  absl::Duration rescale_spacing = absl::Milliseconds(10);  // at least so long between two rescales
};

// Thread-safe.
class Supervisor {
 public:
  // `on_wake` runs on the thread of the supervisor, one call at a time. Requests that come
  // meanwhile are merged, never dropped. `clock` is not owned.
  Supervisor(SupervisorOptions options, base::Clock* clock, base::UniformSource uniform,
             std::function<void(WakeReason)> on_wake);
  ~Supervisor();

  // Starts the safety checks; the first is due at once.
  void Start() ABSL_LOCKS_EXCLUDED(mu_);
  // For kPush, kRescale and kIdle.
  void Wake(WakeReason reason) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `on_wake` after `delay`. Wakes that are close to each other are merged; when very many
  // are waiting the latest is dropped, and left to the safety check.
  void WakeIn(absl::Duration delay, WakeReason reason = WakeReason::kScheduled)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the thread and waits for it. May be called twice. Other calls after it do nothing.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_, join_mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool AwaitReason(WakeReason& reason) ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeReasonLocked(WakeReason& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  WakeReason TakeScheduledLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PlanSafetyCheckLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration NextDeadlineLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SupervisorOptions options_;
  base::Clock* const clock_;  // not owned
  const std::function<void(WakeReason)> on_wake_;

  base::Mutex mu_;
  base::CondVar changed_;
  base::UniformSource uniform_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool pushed_ ABSL_GUARDED_BY(mu_) = false;
  bool rescale_ ABSL_GUARDED_BY(mu_) = false;
  bool idle_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration next_rescale_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  absl::Duration next_safety_check_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  // When by Clock::Monotonic(), rounded up, and why.
  std::set<std::pair<absl::Duration, WakeReason>> scheduled_ ABSL_GUARDED_BY(mu_);

  base::Mutex join_mu_;
  std::thread thread_ ABSL_GUARDED_BY(join_mu_);  // last: it uses all of the above
};

// DepthGauge: reads the statistics of the partitions of a listener, and remembers the last.

// The ready messages of all partitions together.
struct Depth {
  int64_t ready = 0;
  bool known = true;  // false: there may be more, which only a Receive can tell
};

// Thread-safe.
class DepthGauge {
 public:
  // The objects behind the pointers and `partitions` are not owned. `on_error` is called for
  // partitions that do not answer.
  DepthGauge(const std::vector<queue::QueueId>& partitions, queue::QueueStore* store,
             const LeaseTable* leases, CounterSet* counters,
             std::function<void(const absl::Status&)> on_error);

  // Asks the store now.
  Depth Look() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the last statistics of each partition; all 0 before the first.
  std::vector<queue::QueueStats> last_seen() const ABSL_LOCKS_EXCLUDED(mu_);
  // The same, as ListenerLoad tells it.
  std::vector<PartitionSeen> partitions_seen() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::vector<queue::QueueId>& partitions_;  // not owned
  queue::QueueStore* const store_;                 // not owned
  const LeaseTable* const leases_;                 // not owned
  CounterSet* const counters_;                     // not owned
  const std::function<void(const absl::Status&)> on_error_;

  mutable base::Mutex mu_;
  std::vector<queue::QueueStats> last_seen_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
