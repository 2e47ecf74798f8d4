// TaskRoster: who of a listener's dequeue tasks is at work, asleep or gone. The one place where it
// is decided whether a task may leave, so that two tasks never both count on the other to stay
// (D2), and no trigger falls between a task's last look at the queue and its leaving.
//
//   Enter ─► polling ─► Sleep ─► polling ─► TryLeave ─► gone
//                ▲        │ Wake, Dismiss, or the delay ran out
//                └────────┘
//
// A task notes wakes() before it looks at the queue. Sleep and TryLeave refuse when a Wake came
// since: then the look may have been too early, and the task looks again.
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

  // Puts up to `wanted` tasks on the roster, never more than max_tasks together. Answers how many;
  // none while dismissed.
  int Enter(int wanted);

  // Asks to leave after an idle poll that began when wakes() was `seen_wakes`. With `last_stays`
  // the only task on the roster is told to stay.
  Departure TryLeave(uint64_t seen_wakes, bool last_stays);

  // Leaves if all are sent home, or if there are more tasks than may be; then the task must end. In
  // one step, so that a task that goes never counts as one that a Recall has kept.
  bool LeaveIfDismissed();
  // Leaves whatever happens: the task cannot work.
  void Leave();

  uint64_t wakes() const;

  // Sleeps for `delay`, or until woken or dismissed. Returns at once when wakes() has passed
  // `seen_wakes`.
  void Sleep(absl::Duration delay, uint64_t seen_wakes);

  // There is work for up to `tasks` tasks: wakes as many sleepers, longest asleep first. Answers
  // how many tasks are on the roster; at 0 the caller must start some.
  int Wake(int64_t tasks);

  // Sends all tasks home: sleepers wake, dismissed() turns true and nobody enters, until Recall.
  void Dismiss();
  void Recall();
  // From now on. Tasks that are too many go home one by one, when they are done with what they
  // have; of them, sleepers at once.
  void SetMaxTasks(int max_tasks);
  bool dismissed() const;

  // Waits until nobody is on the roster. False when `deadline` (Clock::Monotonic) came first.
  bool AwaitNone(absl::Duration deadline);

  // A task has messages in hand, from BeginWork to EndWork. True when somebody has counted on empty
  // hands since the last BeginWork: perhaps on this task's, which held a message already.
  bool BeginWork();
  void EndWork();

  int max_tasks() const;
  int active() const;
  // Tasks on the roster with nothing in hand: each can still take a message. But one that is just
  // receiving is among them, so the next BeginWork tells that they were counted on.
  int CountOnEmptyHands();
  int most_active() const;
  // Whether more tasks could be at work: there is a free place, or one is asleep.
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

// TaskThreads: the threads of a listener's dequeue tasks. A thread that has ended is joined when
// the next one starts.

// Thread-safe.
class TaskThreads {
 public:
  TaskThreads() = default;
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // Runs `task` on a thread of its own. ResourceExhausted: there is none.
  absl::Status Start(std::function<void()> task);

  // Returns when all that were started before have ended.
  void Join();

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
