// SPDX-License-Identifier: Apache-2.0

// BackPressure: keeps an initiator from running further ahead of the workers than the bounds of a
// job's input queue allow, by items and by bytes.
//
//   room left ──put──► room used up ──look──► below the bound: a share of what is free ──► put
//                                       └──► at the bound: full ──look now and then──► put
//
// The queue is the truth: other initiators put into it, and workers of all hosts settle. To look is
// a call of the store for each partition, so BackPressure looks only when the room of its last look
// is used up, and does so after a put: no put waits for a look, unless the queue was full. It
// begins with some room, for a queue that it has not looked at: a short batch from idle asks no
// queue.
//
// Batches that a full queue holds back stand in line, the first to come first. The first alone
// looks at the queue, however many there are, after pauses that grow. A batch that is held back for
// a reason of its own, such as damaged content, leaves the line.
//
// Repairs, which put again what a queue has lost, are counted and never held back: the workers wait
// for what is lost, and it was within the bounds before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace muster::initiator::batch {

// The defaults keep a queue within the memtables of its engine (DatabaseOptions and QueueDatabase
// of the RocksDB engine): what is settled before it leaves them is written once, to the log.
//
// Items: 80 MiB, all memtables together, by 160 bytes, a message that refers to its content with
// its state and its dedup id, are 524,288; rounded down.
inline constexpr int64_t kMaxQueueItems = 500'000;
// Bytes of bodies: 80 MiB less 16 MiB, the memtable of the messages' states.
inline constexpr int64_t kMaxQueueBytes = int64_t{64} << 20;

struct BackPressureOptions {
  int64_t max_items = kMaxQueueItems;  // ready or in flight; at least 1
  int64_t max_bytes = kMaxQueueBytes;  // of their bodies; at least 1
};

// Of all queues together.
struct BackPressureCounters {
  int64_t held_batches = 0;  // at present
  int64_t held_items = 0;    // of these batches: in the ledger, and not in the queue yet
  int64_t holds = 0;         // times that a batch was held back, ever
  // For how long batches were held back, ever: the sum over the queues, with the present time.
  absl::Duration held_time = absl::ZeroDuration();
};

// Thread-safe. RoomFor and NotePut may block on the store; no other call blocks.
class BackPressure {
 public:
  // What may be put before the queue is looked at again. Both are 0: nothing, the queue is full, or
  // other batches wait for it.
  struct Room {
    int64_t items = 0;
    int64_t bytes = 0;

    bool empty() const { return items <= 0 || bytes <= 0; }
  };

  struct Hold {
    std::string why;          // for people; the same for as long as the bound is
    absl::Duration again_at;  // monotonic; infinite: once Leave has answered the batch
  };

  struct HeldQueue {
    queue::QueueId queue;  // the first partition
    int64_t items = 0;     // held back
  };

  // `queues` and `clock` are not owned.
  BackPressure(BackPressureOptions options, queue::QueueStore* queues, base::Clock* clock);

  // The room for `batch` in its job's input queue, which is `partitions`, at least one. The error
  // is the store's; a partition that is missing holds nothing.
  absl::StatusOr<Room> RoomFor(const std::vector<queue::QueueId>& partitions, uint64_t batch)
      ABSL_LOCKS_EXCLUDED(mu_);

  // So much was put for `batch`, whether there was room or not.
  void NotePut(const std::vector<queue::QueueId>& partitions, uint64_t batch, int64_t items,
               int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  // The batch got no room for `items` more. It is in the line of the queue from now on, until
  // Leave. `first_partition` is that of its job.
  Hold HoldBack(const queue::QueueId& first_partition, uint64_t batch, uint64_t items)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The batch is not held back, or not any more. Answers the batch whose turn it is now, if that is
  // another one than before.
  std::optional<uint64_t> Leave(const queue::QueueId& first_partition, uint64_t batch)
      ABSL_LOCKS_EXCLUDED(mu_);

  BackPressureCounters counters() const ABSL_LOCKS_EXCLUDED(mu_);

  // The queues with batches in line, those with the most items first; at most `max`.
  std::vector<HeldQueue> HeldQueues(size_t max) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Held {
    uint64_t batch = 0;
    int64_t items = 0;
  };

  struct Queue {
    Room room;
    // Of what was put lately: the size of a body is their quotient.
    double put_items = 0;
    double put_bytes = 0;
    bool is_full = false;
    bool is_full_of_bytes = false;
    absl::Duration pause = absl::ZeroDuration();  // before the next look at a full queue
    absl::Duration look_at = absl::ZeroDuration();
    std::deque<Held> line;
    absl::Duration held_since = absl::ZeroDuration();  // monotonic; while there is a line
  };

  // Ready or in flight, in all partitions.
  absl::StatusOr<int64_t> Unsettled(const std::vector<queue::QueueId>& partitions);
  Room Part(int64_t parts) const;
  Queue& FindOrAddLocked(const queue::QueueId& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteLookLocked(int64_t unsettled, Queue* queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const BackPressureOptions options_;
  queue::QueueStore* const queues_;  // not owned
  base::Clock* const clock_;         // not owned

  mutable base::Mutex mu_;
  absl::flat_hash_map<queue::QueueId, Queue> by_queue_ ABSL_GUARDED_BY(mu_);
  int64_t holds_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration held_time_ ABSL_GUARDED_BY(mu_);  // of lines that are gone
};

}  // namespace muster::initiator::batch
