// RestartBackoff: how long one target's program waits after it has failed, so that one which ends
// at once does not eat the host.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/backoff.h"

namespace muster::scaling::actuator::process {

// Not thread-safe. Times are a clock's Monotonic().
class RestartBackoff {
 public:
  RestartBackoff();

  // A replica that nobody told to go ended after it `ran` so long; `why` is for people. Those that
  // end before the next start is due count once.
  void OnFailure(absl::Duration ran, std::string why, absl::Duration now);
  // The program could not be executed at all.
  void OnRefusal(absl::Status why, absl::Duration now);
  // Replicas were started.
  void OnStart(absl::Duration now);

  // Zero: now.
  absl::Duration WaitAt(absl::Duration now) const;
  // Of the last try; OK: the program could be executed.
  const absl::Status& refusal() const { return refusal_; }
  // The last failure, and how long the next start waits; empty: all is well, or has been for
  // kWellAfter.
  std::string Tell(absl::Duration now) const;

 private:
  void Fail(bool in_a_row, std::string why, absl::Duration now);

  base::IdleBackoff backoff_;
  int failures_ = 0;  // in a row
  std::string why_;
  absl::Status refusal_;
  absl::Duration failed_at_ = -absl::InfiniteDuration();
  absl::Duration next_start_ = -absl::InfiniteDuration();
};

}  // namespace muster::scaling::actuator::process
