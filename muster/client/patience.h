// RetryBackoff: how long a client goes on trying while nobody answers.
#pragma once

#include <functional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::client {

// Not thread-safe.
class RetryBackoff {
 public:
  // `clock` is not owned. `on_trouble` may be empty. It is told once of each trouble that lasts for
  // a second: what a server that has just started does not know yet is none.
  RetryBackoff(absl::Duration patience, std::function<void(const absl::Status&)> on_trouble,
               base::Clock* clock)
      : patience_(patience), on_trouble_(std::move(on_trouble)), clock_(clock) {}

  // There was news: trouble begins anew after it.
  void Refresh() { failures_ = 0, told_ = false; }

  // Waits a while before the next try after `trouble`. OK: try again. What is no trouble that may
  // pass, or has lasted too long, comes back as it is. Cancelled: `stop` was requested.
  absl::Status WaitAfter(const absl::Status& trouble, const std::stop_token& stop);

 private:
  const absl::Duration patience_;
  const std::function<void(const absl::Status&)> on_trouble_;
  base::Clock* const clock_;  // not owned
  int failures_ = 0;
  bool told_ = false;
  absl::Duration began_;  // of the trouble, when there were failures
};

}  // namespace muster::client
