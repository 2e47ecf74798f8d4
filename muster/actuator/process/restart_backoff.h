// SPDX-License-Identifier: Apache-2.0

// RestartBackoff: how long the next start of one target's program waits after a failure, so that a
// program which ends at once does not use up the host.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/retry.h"

namespace muster::actuator::process {

// Not thread-safe. Times are a clock's Monotonic().
class RestartBackoff {
 public:
  RestartBackoff();

  // A replica ended by itself after it `ran` so long; `why` is for people. Failures before the next
  // start is due count once.
  void OnFailure(absl::Duration ran, std::string why, absl::Duration now);
  // The program could not be executed at all.
  void OnRefusal(absl::Status why, absl::Duration now);
  // New replicas have started.
  void OnStart(absl::Duration now);

  // How long the next start must wait; zero: not at all.
  absl::Duration WaitAt(absl::Duration now) const;
  // The error of the last try to start; OK: the program could be executed.
  const absl::Status& refusal() const { return refusal_; }
  // The last failure and the wait until the next start, for people. Empty: there was no failure, or
  // none for kWellAfter.
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

}  // namespace muster::actuator::process
