// SPDX-License-Identifier: Apache-2.0

// Gatherer: one call to the engine for what many requests ask at the same time, of one queue or of
// many.
//
//   request ─► Add ─┬─ nobody acts: this thread does ─► act ─► answers ─┐
//                   │                                    ▲              │
//                   └─ somebody does: it is left there,  └── what came ◄┘
//                      and this thread is free               meanwhile
//
// So a request that comes alone is acted on at once, and many that come together share a sync of
// the disk without a thread for each that waits for it. One that is left waiting is dropped, as a
// request in the pool of workers is, if its peer has gone by then: it has tried again.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace muster::queue_gateway::operations {

// Of one call to the engine, which takes more. What comes waits for the call that is under way, and
// for those with what came to its lane before it: at most one request of each connection.
inline constexpr size_t kMaxGathered = 256;
// So many threads act at the same time, each for a part of the queues: one that has to wait for a
// queue that is changed as a whole holds up only that part.
inline constexpr size_t kLanes = 2;

// Thread-safe. What waits is bounded by who asks: each connection has one request under way. An
// Answer is made of a status, too: the error of a whole call.
template <typename Ask, typename Answer>
class Gatherer {
 public:
  using AsksOfQueue = queue::ForQueue<Ask>;
  // A verb of the engine for several queues, each of which is named once: of each queue an answer
  // for each that asks, in order. An error is that of the queue's whole part, of which, but for
  // Unavailable, nothing was done.
  using Act = std::function<std::vector<absl::StatusOr<std::vector<Answer>>>(
      absl::Span<const AsksOfQueue> asked)>;
  // Takes the answer, on the thread of another request perhaps; be quick.
  using Done = std::function<void(Answer answer)>;
  // Whether nobody waits for the answer any more.
  using IsStale = std::function<bool()>;

  explicit Gatherer(Act act) : act_(std::move(act)) {}

  // Which thread, of those that act at the same time, acts for a queue.
  static size_t LaneOf(const queue::QueueId& queue) { return absl::HashOf(queue) % kLanes; }

  // Returns when `done` was called, or will be by the thread that acts for the queue. It is not
  // called where `is_stale` is true before the thread comes to it.
  void Add(const queue::QueueId& queue, Ask ask, Done done, IsStale is_stale) {
    Lane& lane = lanes_[LaneOf(queue)];
    {
      base::MutexLock lock(&lane.mu);
      if (lane.is_acting) {
        lane.waiting.push_back({queue, std::move(ask), std::move(done), std::move(is_stale)});
        return;
      }
      lane.is_acting = true;
    }
    std::vector<Part> round(1);
    round.front().queue = queue;
    round.front().asks.push_back(std::move(ask));
    round.front().done.push_back(std::move(done));
    do {
      Run(round);
    } while (Next(&lane, &round));
  }

 private:
  struct Waiting {
    queue::QueueId queue;
    Ask ask;
    Done done;
    IsStale is_stale;
  };
  struct Lane {
    base::Mutex mu;
    bool is_acting ABSL_GUARDED_BY(mu) = false;
    std::vector<Waiting> waiting ABSL_GUARDED_BY(mu);  // in the order in which they came
  };
  // What is asked of one queue.
  struct Part {
    queue::QueueId queue;
    std::vector<Ask> asks;
    std::vector<Done> done;
  };

  // What has come to the lane meanwhile. False: nothing; whoever comes next acts.
  static bool Next(Lane* lane, std::vector<Part>* round) {
    round->clear();
    while (round->empty()) {
      std::vector<Waiting> next;
      {
        base::MutexLock lock(&lane->mu);
        std::vector<Waiting>& all = lane->waiting;
        if (all.empty()) {
          lane->is_acting = false;
          return false;
        }
        const auto count = static_cast<std::ptrdiff_t>(std::min(all.size(), kMaxGathered));
        next.assign(std::make_move_iterator(all.begin()),
                    std::make_move_iterator(all.begin() + count));
        all.erase(all.begin(), all.begin() + count);
      }
      Sort(std::move(next), round);
    }
    return true;
  }

  static void Sort(std::vector<Waiting> waiting, std::vector<Part>* round) {
    absl::flat_hash_map<queue::QueueId, size_t> places;
    for (Waiting& one : waiting) {
      if (one.is_stale()) continue;
      const auto [place, is_first] = places.try_emplace(one.queue, round->size());
      if (is_first) round->push_back({std::move(one.queue), {}, {}});
      Part& part = (*round)[place->second];
      part.asks.push_back(std::move(one.ask));
      part.done.push_back(std::move(one.done));
    }
  }

  void Run(const std::vector<Part>& round) const {
    std::vector<AsksOfQueue> asked;
    asked.reserve(round.size());
    for (const Part& part : round) asked.push_back({part.queue, part.asks});
    std::vector<absl::StatusOr<std::vector<Answer>>> answers = act_(asked);
    for (size_t i = 0; i < round.size(); ++i) Tell(round[i], std::move(answers[i]));
  }

  void Tell(const Part& part, absl::StatusOr<std::vector<Answer>> answers) const {
    // One that cannot be carried out must not fail the others.
    const bool each_alone =
        !answers.ok() && !absl::IsUnavailable(answers.status()) && part.asks.size() > 1;
    for (size_t i = 0; i < part.asks.size(); ++i) {
      if (each_alone) {
        const AsksOfQueue alone = {part.queue, absl::MakeConstSpan(&part.asks[i], 1)};
        answers = std::move(act_(absl::MakeConstSpan(&alone, 1)).front());
      }
      part.done[i](answers.ok() ? std::move((*answers)[each_alone ? 0 : i])
                                : Answer{answers.status()});
    }
  }

  const Act act_;
  std::array<Lane, kLanes> lanes_;
};

}  // namespace muster::queue_gateway::operations
