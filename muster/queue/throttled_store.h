// ThrottledStore: a queue store that takes only so many storage transactions a second for each
// queue (req. 52). What is more is refused at once with a word on when to come back: callers that
// obey it lose nothing, and the store behind never sees the storm.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/queue/intercepted_store.h"

namespace muster::queue {

// Thread-safe.
class ThrottledStore final : public InterceptedStore {
 public:
  // `per_second`: the target of each queue, above 0; a queue that was quiet may take a second's
  // worth at once. Neither pointer is owned.
  ThrottledStore(QueueStore* behind, double per_second, base::Clock* clock);

 protected:
  // ResourceExhausted with base::RetryAfter when the queue's target is reached.
  absl::Status Before(Verb verb, const QueueId& queue) override;
  void After(Verb, const QueueId&, bool) override {}

 private:
  // Fills at the target's rate, up to a second's worth; a call takes one.
  struct Bucket {
    double tokens;
    absl::Duration filled_at;
  };

  const double per_second_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  absl::flat_hash_map<QueueId, Bucket> buckets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue
