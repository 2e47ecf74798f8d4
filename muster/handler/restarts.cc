// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/restarts.h"

#include <utility>

namespace muster::handler {

absl::string_view RestartReasonName(RestartReason reason) {
  switch (reason) {
    case RestartReason::kFinished:
      return "finished";
    case RestartReason::kEnded:
      return "ended";
    case RestartReason::kDeadline:
      return "deadline";
    case RestartReason::kAnswer:
      return "answer";
    case RestartReason::kNotStarted:
      return "not_started";
    case RestartReason::kStopped:
      break;
  }
  return "stopped";
}

void Restarts::Listen(Listener listener) {
  base::MutexLock lock(&mu_);
  listener_ = std::move(listener);
}

void Restarts::Note(RestartReason reason) {
  base::MutexLock lock(&mu_);
  if (listener_) listener_(reason);
}

}  // namespace muster::handler
