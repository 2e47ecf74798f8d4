// IdleBackoff: how long a dequeue task that finds its queue empty waits before it looks again
// (req. 36): interval = min(minimum + (2^idle − 1) × random[80, 120) ms, maximum).
#pragma once

#include "absl/time/time.h"
#include "muster/base/random.h"

namespace muster::base {

struct IdleBackoffOptions {
  absl::Duration minimum = absl::ZeroDuration();
  absl::Duration maximum = absl::Seconds(1);
};

// Not thread-safe: each task has its own.
class IdleBackoff {
 public:
  explicit IdleBackoff(IdleBackoffOptions options,
                       UniformSource uniform = SeededUniform(RandomSeed()));

  // The wait after `idle_count` empty looks in a row; never below zero nor above the maximum,
  // however long the queue has been idle.
  absl::Duration Interval(int idle_count);

 private:
  const IdleBackoffOptions options_;
  UniformSource uniform_;
};

}  // namespace muster::base
