#include "muster/queue/throttled_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/retry_policy.h"

namespace muster::queue {

ThrottledStore::ThrottledStore(QueueStore* behind, double per_second, base::Clock* clock)
    : InterceptedStore(behind), per_second_(per_second), clock_(clock) {}

absl::Status ThrottledStore::Before(Verb verb, const QueueId& queue) {
  // People's commands and a role's start are few, and must get through.
  if (verb == Verb::kAdministration) return absl::OkStatus();
  const absl::Duration now = clock_->Monotonic();
  const double most = std::max(1.0, per_second_);
  base::MutexLock lock(&mu_);
  Bucket& bucket = buckets_.try_emplace(queue, Bucket{most, now}).first->second;
  const double gained = absl::ToDoubleSeconds(now - bucket.filled_at) * per_second_;
  bucket = {std::min(most, bucket.tokens + gained), now};
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return absl::OkStatus();
  }
  return base::Throttled(
      absl::StrCat("queue '", queue.ToString(), "' takes ", per_second_, " calls a second"),
      absl::Seconds((1 - bucket.tokens) / per_second_));
}

}  // namespace muster::queue
