// SPDX-License-Identifier: Apache-2.0

// LongPolls: gets that wait for a message, of queues with muster-longpoll.
//
//   Wait ─► waiters of the queue, in order ──► round: take for the first ─► done, the next …
//                      ▲                              │ nothing there
//                      └──────────────────────────────┘ until Wake, or a message becomes visible
//
// A waiter costs no thread and, while nothing happens, no time. A queue with waiters has one round
// at a time. A round begins with each Wake, with each new waiter, and when a lease or a delay ends;
// it serves the waiters in the order in which they came, and ends when the queue has nothing left.
// A wake during a round makes it look again, so none is lost; one message costs one receive that
// finds it and one that finds nothing, however many wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/worker_pool.h"
#include "muster/queue/queue_store.h"

namespace muster::queue_gateway::operations {

// Each has a connection and a request of a few kilobytes.
inline constexpr int kMaxWaiters = 5000;
// Rounds block on the store; those of different queues run beside each other.
inline constexpr int kRoundThreads = 2;
// Where the engine cannot tell when a message becomes visible, each queue with waiters is looked at
// so often, while they are few.
inline constexpr absl::Duration kLookInterval = absl::Seconds(1);
// At all of them together: a look takes a round's thread for some milliseconds, in which a round
// that a put has asked for waits.
inline constexpr int kLooksPerSecond = 200;
absl::Duration LookInterval(size_t queues);

// Thread-safe.
class LongPolls {
 public:
  // Receives for a waiter; called by the threads of rounds.
  using Take = std::function<absl::StatusOr<std::vector<queue::Message>>()>;
  // Gets what Take has found, or an empty list when the time is up; called once, on any thread: be
  // quick. Must not call LongPolls.
  using Done = std::function<void(absl::StatusOr<std::vector<queue::Message>>)>;

  // Neither is owned. `queues` tells when messages become visible.
  LongPolls(queue::QueueStore* queues, base::Clock* clock, int max_waiters = kMaxWaiters);
  // Drains.
  ~LongPolls();
  LongPolls(const LongPolls&) = delete;
  LongPolls& operator=(const LongPolls&) = delete;

  // Names a waiter; 0: `done` was called at once, as too many wait, or the server drains.
  using Ticket = uint64_t;
  Ticket Wait(const queue::QueueId& queue, absl::Duration patience, Take take, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The client has gone: its waiter is forgotten, without `done`. If a round is serving it at this
  // moment, what that finds is given back. A ticket that has ended does nothing.
  void Abandon(Ticket ticket) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether a get should wait behind others rather than try first.
  bool HasWaiters(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  // Clients that wait: without those that have gone while a round served them.
  int waiters() ABSL_LOCKS_EXCLUDED(mu_);

  // Something in the queue has changed.
  void Wake(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  void WakeAll() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all waits, those to come too. When it returns, `done` was called for each.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Waiter {
    queue::QueueId queue;
    absl::Duration deadline;
    Take take;
    Done done;
    bool is_served = false;     // by a round, at this moment
    bool is_abandoned = false;  // while it was served
  };
  // A queue with waiters, or with a round.
  struct Line {
    absl::btree_set<Ticket> waiting;  // not served at this moment
    bool has_round = false;
    bool look_again = false;  // a wake came during the round
    // When the next message becomes visible; infinite during a round. See LookAtLocked.
    absl::Duration look_at = absl::InfiniteDuration();
  };

  // A queue that is looked at without a wake, and when.
  struct Look {
    absl::Duration at;
    queue::QueueId queue;
    friend bool operator<(const Look& a, const Look& b) {
      return std::tie(a.at, a.queue.account, a.queue.name) <
             std::tie(b.at, b.queue.account, b.queue.name);
    }
  };

  void StartRoundLocked(const queue::QueueId& queue, Line* line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Round(const queue::QueueId& queue) ABSL_LOCKS_EXCLUDED(mu_);
  size_t CountLines() ABSL_LOCKS_EXCLUDED(mu_);
  // The first waiter; 0: the round ends.
  Ticket Next(const queue::QueueId& queue, Take* take) ABSL_LOCKS_EXCLUDED(mu_);
  // True: the round goes on.
  bool PutBack(Ticket ticket, absl::Duration until_visible) ABSL_LOCKS_EXCLUDED(mu_);
  void Serve(Ticket ticket, absl::StatusOr<std::vector<queue::Message>> found)
      ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(const queue::QueueId& queue, const std::vector<queue::Message>& messages);
  // Ends a wait. The caller has counted it in calling_.
  void Call(const Done& done, absl::StatusOr<std::vector<queue::Message>> found)
      ABSL_LOCKS_EXCLUDED(mu_);
  Done RemoveLocked(Ticket ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetIfIdleLocked(const queue::QueueId& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets when the queue is looked at next, without a wake.
  void LookAtLocked(const queue::QueueId& queue, Line* line, absl::Duration at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The thread that ends waits whose time is up, and starts rounds when messages become visible.
  void WatchTime() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration NextTimeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Done> TakeLateLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  queue::QueueStore* const queues_;  // not owned
  base::Clock* const clock_;         // not owned
  const int max_waiters_;

  base::Mutex mu_;
  base::CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int calling_ ABSL_GUARDED_BY(mu_) = 0;    // calls of `done` that have not returned
  int abandoned_ ABSL_GUARDED_BY(mu_) = 0;  // of waiters_, those with is_abandoned
  Ticket next_ticket_ ABSL_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<Ticket, Waiter> waiters_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<queue::QueueId, Line> lines_ ABSL_GUARDED_BY(mu_);
  absl::btree_set<std::pair<absl::Duration, Ticket>> deadlines_ ABSL_GUARDED_BY(mu_);
  // The finite look_at of lines_: each round wakes the thread that waits for the first of them.
  absl::btree_set<Look> looks_ ABSL_GUARDED_BY(mu_);

  std::unique_ptr<base::WorkerPool> rounds_;
  std::thread watch_;  // last: it uses the others
};

}  // namespace muster::queue_gateway::operations
