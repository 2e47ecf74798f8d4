// SPDX-License-Identifier: Apache-2.0

// FailureStreak: tells of a handler that fails on one item after the other, while there is time to
// act: each failure alone is only an attempt, and says nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "muster/base/mutex.h"
#include "muster/handler/handler.h"
#include "muster/handler/health.h"

namespace muster::processor {

// So many attempts in a row without a result are a trouble of the handler: twice as many as one
// poisonous item costs by default.
inline constexpr int64_t kFailuresUntilTold = 10;

// Of all workers of a job. Thread-safe.
class FailureStreak {
 public:
  // How an attempt at `item` (batch and index) ended. At kFailuresUntilTold without a result in a
  // row, and again whenever they have doubled, the log tells of them; `health`, which may be null,
  // has them as an issue until one has a result. An attempt that was stopped is no attempt.
  void Note(const std::string& job, const std::string& item, const handler::Outcome& outcome,
            handler::HealthIssues* health) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  base::Mutex mu_;
  std::atomic<int64_t> failures_{0};  // written under mu_
  int64_t told_at_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::processor
