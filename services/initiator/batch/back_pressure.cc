// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/back_pressure.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/quantity.h"

namespace muster::initiator::batch {
namespace {

// The share of a bound that is put between two looks, and that must be free before a full queue
// takes more. K initiators of one queue exceed its bound by K - 1 shares at most, and the workers
// have seven shares left to work on while a full queue is not looked at.
constexpr int64_t kShares = 8;
// The room in a queue that was not looked at yet, as a part of the bound: some thousands of items.
// A process that dies and starts again and again exceeds the bound by so much each time.
constexpr int64_t kUnseenParts = 64;

// Between two looks at a full queue. At first the workers may be fast; a look is some milliseconds
// of a NATS server's core at most, and once a second it is none.
constexpr absl::Duration kMinPause = absl::Milliseconds(50);
constexpr absl::Duration kMaxPause = absl::Seconds(1);

// The size of a job's items changes from batch to batch: after so many items the older ones count
// half.
constexpr double kRememberedItems = 65'536;

// Twice as many as a mesh has jobs. One that is forgotten begins anew, as after a start.
constexpr size_t kMaxQueues = 1000;

}  // namespace

BackPressure::BackPressure(BackPressureOptions options, queue::QueueStore* queues,
                           base::Clock* clock)
    : options_(options), queues_(queues), clock_(clock) {
  MUSTER_CHECK(options_.max_items > 0 && options_.max_bytes > 0, "max_items ", options_.max_items,
               ", max_bytes ", options_.max_bytes);
}

BackPressure::Room BackPressure::Part(int64_t parts) const {
  return {std::max<int64_t>(1, options_.max_items / parts),
          std::max<int64_t>(1, options_.max_bytes / parts)};
}

BackPressure::Queue& BackPressure::FindOrAddLocked(const queue::QueueId& queue) {
  const auto found = by_queue_.find(queue);
  if (found != by_queue_.end()) return found->second;
  if (by_queue_.size() >= kMaxQueues) {
    const auto idle = std::find_if(by_queue_.begin(), by_queue_.end(),
                                   [](const auto& known) { return known.second.line.empty(); });
    if (idle != by_queue_.end()) by_queue_.erase(idle);
  }
  Queue& added = by_queue_[queue];
  added.room = Part(kUnseenParts);
  return added;
}

// Delayed messages do not count: they wait for their time and not for workers, who may need what is
// put meanwhile.
absl::StatusOr<int64_t> BackPressure::Unsettled(const std::vector<queue::QueueId>& partitions) {
  int64_t unsettled = 0;
  for (const queue::QueueId& partition : partitions) {
    const absl::StatusOr<queue::QueueStats> stats = queues_->Stats(partition);
    if (absl::IsNotFound(stats.status())) continue;
    if (!stats.ok()) return stats.status();
    unsettled += stats->ready + stats->in_flight;
  }
  return unsettled;
}

void BackPressure::NoteLookLocked(int64_t unsettled, Queue* queue) {
  const Room share = Part(kShares);
  const Room needed = queue->is_full ? share : Room{1, 1};
  const double body_bytes = queue->put_items > 0 ? queue->put_bytes / queue->put_items : 0;
  const double free_bytes =
      static_cast<double>(options_.max_bytes) - static_cast<double>(unsettled) * body_bytes;
  const int64_t free_items = options_.max_items - unsettled;
  const bool has_items = free_items >= needed.items;
  const bool has_bytes = free_bytes >= static_cast<double>(needed.bytes);
  queue->is_full = unsettled > 0 && !(has_items && has_bytes);
  if (!queue->is_full) {
    queue->room = {
        std::clamp<int64_t>(free_items, 1, share.items),
        static_cast<int64_t>(std::clamp(free_bytes, 1.0, static_cast<double>(share.bytes)))};
    queue->pause = absl::ZeroDuration();
    return;
  }
  queue->room = {};
  queue->is_full_of_bytes = has_items;
  queue->pause = std::clamp(2 * queue->pause, kMinPause, kMaxPause);
  queue->look_at = clock_->Monotonic() + queue->pause;
}

absl::StatusOr<BackPressure::Room> BackPressure::RoomFor(
    const std::vector<queue::QueueId>& partitions, uint64_t batch) {
  {
    base::MutexLock lock(&mu_);
    const Queue& queue = FindOrAddLocked(partitions.front());
    if (!queue.line.empty() && queue.line.front().batch != batch) return Room();
    if (queue.is_full && clock_->Monotonic() < queue.look_at) return Room();
    if (!queue.is_full && !queue.room.empty()) return queue.room;
  }
  const absl::StatusOr<int64_t> unsettled = Unsettled(partitions);
  if (!unsettled.ok()) return unsettled.status();
  base::MutexLock lock(&mu_);
  Queue& queue = FindOrAddLocked(partitions.front());
  NoteLookLocked(*unsettled, &queue);
  return queue.room;
}

void BackPressure::NotePut(const std::vector<queue::QueueId>& partitions, uint64_t batch,
                           int64_t items, int64_t bytes) {
  {
    base::MutexLock lock(&mu_);
    Queue& queue = FindOrAddLocked(partitions.front());
    queue.room.items -= items;
    queue.room.bytes -= bytes;
    queue.put_items += static_cast<double>(items);
    queue.put_bytes += static_cast<double>(bytes);
    if (queue.put_items > kRememberedItems) {
      queue.put_items /= 2;
      queue.put_bytes /= 2;
    }
    for (Held& held : queue.line) {
      if (held.batch == batch) held.items = std::max<int64_t>(0, held.items - items);
    }
    if (queue.is_full || !queue.room.empty()) return;
  }
  // Looks now, so that the next put need not wait for it. If it fails, RoomFor looks again, and
  // tells the error.
  const absl::StatusOr<int64_t> unsettled = Unsettled(partitions);
  if (!unsettled.ok()) return;
  base::MutexLock lock(&mu_);
  NoteLookLocked(*unsettled, &FindOrAddLocked(partitions.front()));
}

BackPressure::Hold BackPressure::HoldBack(const queue::QueueId& first_partition, uint64_t batch,
                                          uint64_t items) {
  base::MutexLock lock(&mu_);
  Queue& queue = FindOrAddLocked(first_partition);
  if (queue.line.empty()) queue.held_since = clock_->Monotonic();
  const auto in_line = std::find_if(queue.line.begin(), queue.line.end(),
                                    [batch](const Held& held) { return held.batch == batch; });
  if (in_line != queue.line.end()) {
    in_line->items = static_cast<int64_t>(items);
  } else {
    queue.line.push_back({batch, static_cast<int64_t>(items)});
    ++holds_;
    base::Log(base::kInfo, "a batch is held back until workers have worked some of its queue off",
              {{"batch", batch}, {"queue", first_partition.ToString()}, {"items", items}});
  }
  const std::string bound =
      queue.is_full_of_bytes ? absl::StrCat(base::BytesToString(options_.max_bytes), " of messages")
                             : absl::StrCat(options_.max_items, " items");
  const bool is_first = queue.line.front().batch == batch;
  return {absl::StrCat("its queue holds ", bound,
                       ", the bound: it goes on when workers have worked some off"),
          is_first ? queue.look_at : absl::InfiniteDuration()};
}

std::optional<uint64_t> BackPressure::Leave(const queue::QueueId& first_partition, uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto known = by_queue_.find(first_partition);
  if (known == by_queue_.end() || known->second.line.empty()) return std::nullopt;
  Queue& queue = known->second;
  const bool was_first = queue.line.front().batch == batch;
  std::erase_if(queue.line, [batch](const Held& held) { return held.batch == batch; });
  if (queue.line.empty()) {
    held_time_ += clock_->Monotonic() - queue.held_since;
    return std::nullopt;
  }
  if (!was_first) return std::nullopt;
  return queue.line.front().batch;
}

BackPressureCounters BackPressure::counters() const {
  base::MutexLock lock(&mu_);
  BackPressureCounters counters;
  counters.holds = holds_;
  counters.held_time = held_time_;
  for (const auto& [id, queue] : by_queue_) {
    counters.held_batches += static_cast<int64_t>(queue.line.size());
    for (const Held& held : queue.line) counters.held_items += held.items;
    if (!queue.line.empty()) counters.held_time += clock_->Monotonic() - queue.held_since;
  }
  return counters;
}

std::vector<BackPressure::HeldQueue> BackPressure::HeldQueues(size_t max) const {
  std::vector<HeldQueue> held_queues;
  {
    base::MutexLock lock(&mu_);
    for (const auto& [id, queue] : by_queue_) {
      HeldQueue held_queue{id};
      for (const Held& held : queue.line) held_queue.items += held.items;
      if (held_queue.items > 0) held_queues.push_back(std::move(held_queue));
    }
  }
  std::sort(held_queues.begin(), held_queues.end(),
            [](const HeldQueue& a, const HeldQueue& b) { return a.items > b.items; });
  if (held_queues.size() > max) held_queues.resize(max);
  return held_queues;
}

}  // namespace muster::initiator::batch
