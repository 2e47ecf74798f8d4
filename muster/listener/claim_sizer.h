// ClaimSizer: how many messages a dequeue task should claim, so that it holds only what it will
// start soon and the rest stays there for others (req. 70).
#pragma once

#include "absl/time/time.h"
#include "muster/base/mutex.h"

namespace muster::listener {

// Thread-safe; one for all tasks of a listener, so that a new task starts with what is known.
class ClaimSizer {
 public:
  // `horizon`: how long a claimed message may wait in the hands of its task.
  explicit ClaimSizer(absl::Duration horizon) : horizon_(horizon) {}

  // Messages to claim now, 1 to `max`. The first claim is 1; then at most twice the largest batch
  // worked on so far, and no more than fit the horizon.
  int Claim(int max) const;

  // `messages` took `elapsed` together.
  void Observe(int messages, absl::Duration elapsed);

 private:
  const absl::Duration horizon_;
  mutable base::Mutex mu_;
  bool measured_ ABSL_GUARDED_BY(mu_) = false;
  int largest_batch_ ABSL_GUARDED_BY(mu_) = 0;
  double seconds_per_message_ ABSL_GUARDED_BY(mu_) = 0;  // exponentially weighted mean
};

}  // namespace muster::listener
