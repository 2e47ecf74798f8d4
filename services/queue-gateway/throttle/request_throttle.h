// SPDX-License-Identifier: Apache-2.0

// RequestThrottle: refuses the requests to a queue, or of an account, that are beyond a target.
//
// Each request that is admitted takes 1/target s of the queue's time; a queue may be ahead of its
// time by one second, or by one request where that is more (the generic cell rate algorithm, ITU-T
// I.371). So a burst of one second's worth passes, and the long-run rate is the target.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::queue_gateway::throttle {

// Requests a second; 0: no target.
struct RequestTargets {
  double per_queue = 0;
  double per_account = 0;
};

// The largest target: above it there is no use in counting.
inline constexpr double kMaxTarget = 1e6;

// No queue has a longer name.
inline constexpr size_t kMaxQueueNameBytes = 63;

// Queues and accounts that are remembered. Each takes 250 bytes at most, so all of them 16 MB. One
// that had no request for a second is forgotten when the room is needed.
inline constexpr size_t kMaxRemembered = 65'536;

// The whole seconds that a Retry-After header tells of `wait`: rounded up, at least 1.
int RetryAfterSeconds(absl::Duration wait);

// Thread-safe; takes no memory and no lock while there is no target.
class RequestThrottle {
 public:
  // `targets` are 0 to kMaxTarget. `clock` is not owned.
  RequestThrottle(const RequestTargets& targets, const base::Clock* clock)
      : targets_(targets), clock_(clock) {}

  // Zero: the request may go on, and counts. Else it is refused and does not count; it would be
  // admitted after this time, if no other came before. An empty `queue`, or one that is longer than
  // kMaxQueueNameBytes: the request is of the account alone. Where kMaxRemembered had a request
  // within the last second, one more queue or account has no target for now.
  absl::Duration Admit(absl::string_view account, absl::string_view queue) ABSL_LOCKS_EXCLUDED(mu_);

  size_t remembered() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Account and queue; an empty queue stands for the account itself.
  using Name = std::pair<std::string, std::string>;

  bool HasTarget() const { return targets_.per_queue > 0 || targets_.per_account > 0; }
  absl::Duration WaitLocked(const Name& name, double target, absl::Duration now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountLocked(const Name& name, double target, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetIdleLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const RequestTargets targets_;
  const base::Clock* const clock_;  // not owned
  mutable base::Mutex mu_;
  // When the requests that were admitted would be over, had they come at the target's pace.
  std::map<Name, absl::Duration> paid_until_ ABSL_GUARDED_BY(mu_);
  absl::Duration next_sweep_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace muster::queue_gateway::throttle
