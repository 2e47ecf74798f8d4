// SPDX-License-Identifier: Apache-2.0

// CircuitBreaker: spares callers the wait for a server that hangs.
//
//   closed ──a call times out──► open ──kBreakerPause──► one call tries ──answered──► closed
//                                 ▲                              │
//                                 └──────────times out───────────┘
//
// A caller that works on many batches, one after the other, would otherwise wait out a timeout for
// each of them, and meanwhile lose the leases of what it holds. An answer of any other kind, also
// an error, shows that the server does not hang.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::rpc {

// Thread-safe. For one server.
class CircuitBreaker {
 public:
  // `clock` is not owned.
  explicit CircuitBreaker(base::Clock* clock) : clock_(clock) {}

  // OK: make the call, and then Note its answer. Unavailable: the server hangs, as far as is known.
  absl::Status Admit() ABSL_LOCKS_EXCLUDED(mu_);
  void Note(const absl::Status& answer) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  absl::Duration open_until_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // closed
  bool tries_ ABSL_GUARDED_BY(mu_) = false;  // a call finds out whether the server still hangs
};

}  // namespace muster::rpc
