// SPDX-License-Identifier: Apache-2.0

// OpenReceives: how an idle listener waits for work where the engine can wait (Traits::long_poll):
// it keeps one receive of one message open in each of its partitions. A message then reaches a
// worker without a trigger, a look at the depth and a pull. Triggers and safety checks go on as
// without it, and find what an open receive misses.
//
//   idle ─► Open ─► open ─┬─ a message ───► a dequeue task starts with it
//            ▲            ├─ time is up ──► open again
//            │            └─ any error ───► open again soon, then with the next safety check
//            └── the last task has left
//
// A listener with at most kMaxOpenReceives partitions keeps a receive open in each of them; a
// listener with more, in so many of them, beginning at a random one. Beyond kMaxWaitsOfQueue waits
// of one queue, as its last statistics count them, a listener leaves the queue to others: a large
// fleet does not crowd at the server, and what it waits with is made anew only as those end. A
// listener that lately left a message to others (Handover) keeps none open: the message would come
// back to it. While tasks are at work, no receive is opened anew.
//
// An open receive is one request to the engine for `patience`, and holds no thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// More would be many requests for a listener that does nothing.
inline constexpr int kMaxOpenReceives = 4;
// Enough that a burst finds workers at once; the rest of the fleet hears the trigger.
inline constexpr int64_t kMaxWaitsOfQueue = 16;
// Of an engine that does not say that the time is up.
inline constexpr absl::Duration kOpenReceiveGrace = absl::Seconds(2);

// Thread-safe.
class OpenReceives {
 public:
  struct Events {
    // A message for a task: true if one starts with it. On a thread of the engine: quick.
    std::function<bool(int partition, queue::Message message)> on_message;
    // A receive has ended without a message; `why` is NotFound if its time is up, and Aborted if a
    // message is there to be received. On a thread of the engine: quick.
    std::function<void(const absl::Status& why)> on_end;
  };

  // Neither pointer is owned; both, and `partitions`, outlive it. `first`: the partition to begin
  // at.
  OpenReceives(const std::vector<queue::QueueId>& partitions, int first, absl::Duration patience,
               queue::QueueStore* store, base::Clock* clock, Events events);
  ~OpenReceives();  // Close()s

  // Whether the engine can wait.
  bool can_wait() const { return can_wait_; }

  // Opens what is not open, as a listener that has become idle. `seen`: the last statistics of each
  // partition. `retry`: also what an error has ended.
  void Open(const std::vector<queue::QueueStats>& seen, bool retry)
      ABSL_LOCKS_EXCLUDED(mu_, open_mu_);
  // Ends all, until Open. When it returns, no event runs. Not from within an event.
  void Close() ABSL_LOCKS_EXCLUDED(mu_, open_mu_);

  // Whether each partition has one that is open.
  bool cover_all() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a task that finds the queue empty may leave at once, because Open will cover all.
  bool will_cover_all() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  enum class State { kClosed, kOpen, kOver, kFailed };
  struct Slot {
    int partition = 0;
    State state = State::kClosed;
    uint64_t opened = 0;   // counts its openings
    absl::Duration until;  // monotonic
    std::unique_ptr<queue::QueueStore::Wait> wait;
  };

  // Opens the slot, for which there is place.
  void OpenSlot(size_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(open_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  bool Take(size_t slot, uint64_t opened, absl::StatusOr<queue::Message> message)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that the slot's receive is over. False: it is another one by now.
  bool Note(size_t slot, uint64_t opened, State state) ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<queue::QueueId>& partitions_;  // not owned
  const absl::Duration patience_;
  queue::QueueStore* const store_;  // not owned
  base::Clock* const clock_;        // not owned
  const Events events_;
  const bool can_wait_;

  base::Mutex open_mu_;  // held while slots are opened and closed, which calls the engine
  mutable base::Mutex mu_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mu_);
  bool crowded_ ABSL_GUARDED_BY(mu_) = false;  // the last Open left a queue to others
};

}  // namespace muster::listener
