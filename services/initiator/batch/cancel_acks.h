// SPDX-License-Identifier: Apache-2.0

// CancelAcks: collects the acknowledgements of processors that they no longer work on a cancelled
// batch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::initiator::batch {

// Thread-safe.
class CancelAcks {
 public:
  // `clock` is not owned and outlives it.
  explicit CancelAcks(base::Clock* clock) : clock_(clock) {}

  // Calls `cancel`, then waits until each of `instances` has acknowledged `batch`, for `patience`
  // at most. Answers how many of them have acknowledged it. The error is cancel's.
  absl::StatusOr<int> Collect(uint64_t batch, const std::vector<std::string>& instances,
                              absl::Duration patience, const std::function<absl::Status()>& cancel)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Never blocks.
  void OnAcknowledged(uint64_t batch, const std::string& instance) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Awaited {
    int waiting = 0;  // calls of Collect
    std::set<std::string> acknowledged;
  };

  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<uint64_t, Awaited> awaited_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::batch
