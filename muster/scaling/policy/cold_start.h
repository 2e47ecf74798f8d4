// ColdStart: how long it takes from a scaling action to a new replica's first dequeue.
#pragma once

#include <deque>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. Remembers the last hundred starts.
class ColdStart {
 public:
  // `prior` is believed until five starts were measured.
  explicit ColdStart(absl::Duration prior) : prior_(prior) {}

  // False, and nothing learned, where the time is negative or longer than a day.
  bool See(absl::Duration measured);

  // The 95th percentile; of fewer than five starts the longest, and no less than the prior.
  absl::Duration P95() const;

 private:
  const absl::Duration prior_;
  std::deque<absl::Duration> measured_;
};

}  // namespace muster::scaling::policy
