// SPDX-License-Identifier: Apache-2.0

// Restarts: why programs of a job's handler, or calls of its server, have ended and had to be
// followed by another one.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"

namespace muster::handler {

enum class RestartReason {
  kFinished,    // it ended as it may: with status 0 after an answer, or by saying so
  kEnded,       // it ended otherwise: it crashed, was killed, or closed its pipes
  kDeadline,    // it was ended because an item got no answer in time
  kAnswer,      // it was ended because it said what it must not
  kNotStarted,  // it could not be started or called, or took no item
  kStopped,     // it was ended because its item had to stop
};

absl::string_view RestartReasonName(RestartReason reason);  // "finished", "not_started" …

// Shared by all handlers of a job. Thread-safe.
class Restarts {
 public:
  using Listener = std::function<void(RestartReason)>;

  // Calls `listener` for each restart from now on, in place of an earlier one. It runs on workers'
  // threads, one call at a time: be quick.
  void Listen(Listener listener) ABSL_LOCKS_EXCLUDED(mu_);
  void Note(RestartReason reason) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  base::Mutex mu_;
  Listener listener_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::handler
