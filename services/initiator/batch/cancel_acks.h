// CancelAcks: who has said that it works no more on a batch that was given up.
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

  // Calls `cancel`, and waits until each of `instances` has acknowledged `batch` since, or
  // `patience` is over. Answers how many of them have. The error is cancel's.
  absl::StatusOr<int> Collect(uint64_t batch, const std::vector<std::string>& instances,
                              absl::Duration patience, const std::function<absl::Status()>& cancel);

  // Never blocks.
  void OnAcknowledged(uint64_t batch, const std::string& instance);

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
