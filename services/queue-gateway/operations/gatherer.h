// SPDX-License-Identifier: Apache-2.0

// Gatherer: one call to the engine for what many requests ask of a queue at the same time.
//
//   request ─► Add ─┬─ nobody acts for the queue: this thread does ─► act ─► answers ─┐
//                   │                                                 ▲               │
//                   └─ somebody does: it is left there, and           └── what came ◄─┘
//                      this thread is free                                meanwhile
//
// So a request that comes alone is acted on at once, and many that come together share a sync of
// the disk without a thread for each that waits for it. One that is left waiting is dropped, as a
// request in the pool of workers is, if its peer has gone by then: it has tried again.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/queue/queue_store.h"

namespace muster::queue_gateway::operations {

// Of one call to the engine, which takes more: nobody waits for long behind others.
inline constexpr size_t kMaxGathered = 256;

// Thread-safe. What waits is bounded by who asks: each connection has one request under way. An
// Answer is made of a status, too: the error of a whole call.
template <typename Ask, typename Answer>
class Gatherer {
 public:
  // A verb of the engine: an answer for each that asks, in order. An error is that of the whole
  // call, and but for Unavailable nothing was done.
  using Act = std::function<absl::StatusOr<std::vector<Answer>>(const queue::QueueId& queue,
                                                                absl::Span<const Ask> asks)>;
  // Takes the answer, on the thread of another request perhaps; be quick.
  using Done = std::function<void(Answer answer)>;
  // Whether nobody waits for the answer any more.
  using IsStale = std::function<bool()>;

  explicit Gatherer(Act act) : act_(std::move(act)) {}

  // Returns when `done` was called, or will be by the thread that acts for the queue. It is not
  // called where `is_stale` is true before the thread comes to it.
  void Add(const queue::QueueId& queue, Ask ask, Done done, IsStale is_stale)
      ABSL_LOCKS_EXCLUDED(mu_) {
    {
      base::MutexLock lock(&mu_);
      const auto [waiting, is_first] = waiting_.try_emplace(queue);
      if (!is_first) {
        waiting->second.push_back({std::move(ask), std::move(done), std::move(is_stale)});
        return;
      }
    }
    Round round;
    round.asks.push_back(std::move(ask));
    round.done.push_back(std::move(done));
    do {
      Run(queue, round);
    } while (Next(queue, &round));
  }

 private:
  struct Waiting {
    Ask ask;
    Done done;
    IsStale is_stale;
  };
  struct Round {
    std::vector<Ask> asks;
    std::vector<Done> done;
  };

  // What has come for the queue meanwhile. False: nothing; whoever comes next acts.
  bool Next(const queue::QueueId& queue, Round* round) ABSL_LOCKS_EXCLUDED(mu_) {
    round->asks.clear();
    round->done.clear();
    while (round->asks.empty()) {
      std::vector<Waiting> next;
      {
        base::MutexLock lock(&mu_);
        const auto found = waiting_.find(queue);
        std::vector<Waiting>& all = found->second;
        if (all.empty()) {
          waiting_.erase(found);
          return false;
        }
        const auto count = static_cast<std::ptrdiff_t>(std::min(all.size(), kMaxGathered));
        next.assign(std::make_move_iterator(all.begin()),
                    std::make_move_iterator(all.begin() + count));
        all.erase(all.begin(), all.begin() + count);
      }
      for (Waiting& one : next) {
        if (one.is_stale()) continue;
        round->asks.push_back(std::move(one.ask));
        round->done.push_back(std::move(one.done));
      }
    }
    return true;
  }

  void Run(const queue::QueueId& queue, const Round& round) {
    absl::StatusOr<std::vector<Answer>> answers = act_(queue, round.asks);
    // One that cannot be carried out must not fail the others.
    const bool each_alone =
        !answers.ok() && !absl::IsUnavailable(answers.status()) && round.asks.size() > 1;
    for (size_t i = 0; i < round.asks.size(); ++i) {
      if (each_alone) answers = act_(queue, absl::MakeConstSpan(&round.asks[i], 1));
      round.done[i](answers.ok() ? std::move((*answers)[each_alone ? 0 : i])
                                 : Answer{answers.status()});
    }
  }

  const Act act_;

  base::Mutex mu_;
  // By the queues for which a thread acts.
  absl::flat_hash_map<queue::QueueId, std::vector<Waiting>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue_gateway::operations
