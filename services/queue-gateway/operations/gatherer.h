// SPDX-License-Identifier: Apache-2.0

// Gatherer: one call to the engine for what many requests ask of a queue at the same time.
//
//   request ─► Add ─┬─ nobody acts for the queue: this thread does ─► act ─► answers ─┐
//                   │                                                 ▲               │
//                   └─ somebody does: it is left there, and           └── what came ◄─┘
//                      this thread is free                                meanwhile
//
// So a request that comes alone is acted on at once, and many that come together share a sync of
// the disk without a thread for each that waits for it.
#pragma once

#include <algorithm>
#include <functional>
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
  // Takes the answer, on the thread of another request perhaps; be quick. What it returns, unless
  // that is null, may take its time: it runs when no other request waits for the thread.
  using Done = std::function<std::function<void()>(Answer answer)>;

  explicit Gatherer(Act act) : act_(std::move(act)) {}

  // Returns when `done` was called, or will be by the thread that acts for the queue.
  void Add(const queue::QueueId& queue, Ask ask, Done done) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      base::MutexLock lock(&mu_);
      const auto [waiting, is_first] = waiting_.try_emplace(queue);
      if (!is_first) {
        waiting->second.asks.push_back(std::move(ask));
        waiting->second.done.push_back(std::move(done));
        return;
      }
    }
    Round round;
    round.asks.push_back(std::move(ask));
    round.done.push_back(std::move(done));
    std::vector<std::function<void()>> late;
    do {
      Run(queue, round, &late);
    } while (Next(queue, &round));
    for (const std::function<void()>& rest : late) rest();
  }

 private:
  struct Round {
    std::vector<Ask> asks;
    std::vector<Done> done;
  };

  // What has come for the queue meanwhile. False: nothing; whoever comes next acts.
  bool Next(const queue::QueueId& queue, Round* round) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const auto waiting = waiting_.find(queue);
    Round& all = waiting->second;
    if (all.asks.empty()) {
      waiting_.erase(waiting);
      return false;
    }
    const auto count = static_cast<std::ptrdiff_t>(std::min(all.asks.size(), kMaxGathered));
    round->asks.assign(std::make_move_iterator(all.asks.begin()),
                       std::make_move_iterator(all.asks.begin() + count));
    round->done.assign(std::make_move_iterator(all.done.begin()),
                       std::make_move_iterator(all.done.begin() + count));
    all.asks.erase(all.asks.begin(), all.asks.begin() + count);
    all.done.erase(all.done.begin(), all.done.begin() + count);
    return true;
  }

  void Run(const queue::QueueId& queue, const Round& round,
           std::vector<std::function<void()>>* late) {
    absl::StatusOr<std::vector<Answer>> answers = act_(queue, round.asks);
    // One that cannot be carried out must not fail the others.
    const bool each_alone =
        !answers.ok() && !absl::IsUnavailable(answers.status()) && round.asks.size() > 1;
    for (size_t i = 0; i < round.asks.size(); ++i) {
      if (each_alone) answers = act_(queue, absl::MakeConstSpan(&round.asks[i], 1));
      std::function<void()> rest = round.done[i](
          answers.ok() ? std::move((*answers)[each_alone ? 0 : i]) : Answer{answers.status()});
      if (rest != nullptr) late->push_back(std::move(rest));
    }
  }

  const Act act_;

  base::Mutex mu_;
  // By the queues for which a thread acts.
  absl::flat_hash_map<queue::QueueId, Round> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue_gateway::operations
