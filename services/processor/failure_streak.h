// SPDX-License-Identifier: Apache-2.0

// FailureStreak: tells of a handler that fails on one item after the other, or puts each off, while
// there is time to act: each failure alone is only an attempt, and says nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/handler/handler.h"
#include "muster/handler/health_troubles.h"

namespace muster::processor {

// So many attempts in a row without a result are a trouble of the handler: twice as many as one
// poisonous item costs by default.
inline constexpr int64_t kFailuresUntilTold = 10;

// Some handlers bound their rate by deferrals, with results in between: deferrals are told only
// once they have gone on for this time.
inline constexpr absl::Duration kDeferralsUntilTold = absl::Seconds(10);

// Of all workers of a job. Thread-safe.
class FailureStreak {
 public:
  // How an attempt at `item` (batch and index) ended, at the monotonic time `now`. At
  // kFailuresUntilTold failures without a result between them, and again whenever they have
  // doubled, the log tells of them; `health`, which may be null, has them as a trouble until one
  // has a result. Deferrals are no failures, and are told likewise, as what they are. An attempt
  // that was stopped is no attempt.
  void Note(const std::string& job, const std::string& item, const handler::Outcome& outcome,
            absl::Duration now, handler::HealthTroubles* health) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Of one kind, since the last result.
  struct Count {
    int64_t attempts = 0;
    int64_t told_at = 0;
    absl::Duration since;  // the first
  };

  base::Mutex mu_;
  std::atomic<bool> runs_{false};  // since the last result; written under mu_
  Count failures_ ABSL_GUARDED_BY(mu_);
  Count deferrals_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::processor
