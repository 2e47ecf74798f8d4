// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/circuit_breaker.h"

#include "muster/rpc/limits.h"

namespace muster::rpc {

absl::Status CircuitBreaker::Admit() {
  base::MutexLock lock(&mu_);
  if (open_until_ == -absl::InfiniteDuration()) return absl::OkStatus();
  if (tries_ || clock_->Monotonic() < open_until_) {
    return absl::UnavailableError("it let a call time out, and is asked again only after a while");
  }
  tries_ = true;
  return absl::OkStatus();
}

void CircuitBreaker::Note(const absl::Status& answer) {
  base::MutexLock lock(&mu_);
  tries_ = false;
  open_until_ = absl::IsDeadlineExceeded(answer) ? clock_->Monotonic() + kBreakerPause
                                                 : -absl::InfiniteDuration();
}

}  // namespace muster::rpc
