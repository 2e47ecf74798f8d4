// SPDX-License-Identifier: Apache-2.0

// WaitLimit: holds all that a command waits for to its --wait-timeout: the answers to calls, the
// upload, and the end of the batch.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "cli/server/mesh_client.h"
#include "muster/base/clock.h"

namespace muster::cli {

// One thread creates and destroys it; the rest is thread-safe.
class WaitLimit {
 public:
  // The time runs from now on, also for the calls of `mesh`. An infinite `timeout` has no end.
  // Nothing is owned; `mesh` may outlive the limit. `stop` ends the waits, too.
  WaitLimit(absl::Duration timeout, MeshClient* mesh, base::Clock* clock,
            const std::stop_token& stop);
  ~WaitLimit();
  WaitLimit(const WaitLimit&) = delete;
  WaitLimit& operator=(const WaitLimit&) = delete;

  // Ends a wait: requested when the time is up, and when the `stop` of the constructor is.
  std::stop_token token() const { return stop_.get_token(); }
  // Whether the time is up. A call may be ended by its bound a little before that.
  bool is_over() const;
  // At least zero.
  absl::Duration left() const;

 private:
  base::Clock* const clock_;       // not owned
  const absl::Duration deadline_;  // monotonic
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> on_stop_;
  std::thread thread_;
};

}  // namespace muster::cli
