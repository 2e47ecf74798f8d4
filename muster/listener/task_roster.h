// SPDX-License-Identifier: Apache-2.0

// TaskRoster: which dequeue tasks of a listener are at work, asleep or gone. Only the roster
// decides whether a task may leave. So two tasks never both leave because each relied on the other
// to stay, and no trigger is lost between the last look of a task at the queue and its
// leaving.
//
//   Enter ─► polling ─► Sleep ─► polling ─► TryLeave ─► gone
//                ▲        │ Wake, Dismiss, or the delay ran out
//                └────────┘
//
// A task reads wakes() before it looks at the queue. Sleep and TryLeave refuse when a Wake came
// since: the look may have been too early, so the task looks again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::listener {

// Thread-safe.
class TaskRoster {
 public:
  enum class Departure {
    kLeft,       // the task is off the roster and must end
    kPollAgain,  // a wake-up came since the task looked
    kStay,       // it is the last one, and the last one stays
  };

  TaskRoster(base::Clock* clock, int max_tasks) : clock_(clock), max_tasks_(max_tasks) {}

  // Puts up to `wanted` tasks on the roster, at most max_tasks in total. Returns how many; none
  // while dismissed.
  int Enter(int wanted);

  // Asks to leave after an idle poll that began when wakes() was `seen_wakes`. With `last_stays`
  // the last task on the roster must stay.
  Departure TryLeave(uint64_t seen_wakes, bool last_stays);

  // Leaves if all tasks are dismissed or there are too many; then the task must end. Check and
  // leaving are one step, so that a Recall never counts on a task that is about to go.
  bool LeaveIfDismissed();
  // Leaves unconditionally: the task cannot work.
  void Leave();

  uint64_t wakes() const;

  // Sleeps for `delay`, or until woken or dismissed. Returns at once when wakes() has passed
  // `seen_wakes`.
  void Sleep(absl::Duration delay, uint64_t seen_wakes);

  // There is work for up to `tasks` tasks: wakes that many sleepers, longest asleep first. Returns
  // how many tasks are on the roster; at 0 the caller must start some.
  int Wake(int64_t tasks);

  // Dismisses all tasks: sleepers wake, dismissed() turns true and no task may enter, until Recall.
  void Dismiss();
  void Recall();
  // Applies from now on. Surplus tasks leave one by one after their current batch; surplus sleepers
  // leave at once.
  void SetMaxTasks(int max_tasks);
  bool dismissed() const;

  // Waits until the roster is empty. Returns false when `deadline` (Clock::Monotonic) came first.
  bool AwaitNone(absl::Duration deadline);

  // A task has messages in hand from BeginWork to EndWork. BeginWork returns true when
  // CountOnEmptyHands was called since the last BeginWork: it may have counted this task, which
  // already had a message.
  bool BeginWork();
  void EndWork();

  int max_tasks() const;
  int active() const;
  // Returns the number of tasks without messages: each can still take one. A task that is just
  // receiving is among them, so the next BeginWork returns true.
  int CountOnEmptyHands();
  int most_active() const;
  // Whether more tasks could work: there is a free place, or a task is asleep.
  bool has_idle_hands() const;

 private:
  struct Sleeper {
    base::CondVar cv;
    bool woken = false;
  };

  void WakeLocked(int64_t tasks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsSurplusLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return active_ > max_tasks_; }
  void LeaveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned

  mutable base::Mutex mu_;
  base::CondVar left_;
  int max_tasks_ ABSL_GUARDED_BY(mu_);
  int active_ ABSL_GUARDED_BY(mu_) = 0;
  int working_ ABSL_GUARDED_BY(mu_) = 0;
  int most_active_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t wakes_ ABSL_GUARDED_BY(mu_) = 0;
  bool counted_on_ ABSL_GUARDED_BY(mu_) = false;
  bool dismissed_ ABSL_GUARDED_BY(mu_) = false;
  std::list<Sleeper*> sleepers_ ABSL_GUARDED_BY(mu_);  // longest asleep first
};

// TaskThreads: the threads of the dequeue tasks of a listener. Start joins the threads that have
// ended.

// Thread-safe.
class TaskThreads {
 public:
  TaskThreads() = default;
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // Runs `task` on a new thread. ResourceExhausted: the system has no thread left.
  absl::Status Start(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns when all threads started before have ended.
  void Join() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Thread {
    std::thread thread;
    std::atomic<bool> ended = false;
  };

  void ReapLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  std::list<Thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
