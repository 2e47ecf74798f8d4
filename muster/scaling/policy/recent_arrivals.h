// RecentArrivals: at what rate work came in the last minute, and how large its batches are.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Not thread-safe. Bounded.
class RecentArrivals {
 public:
  // `ever`: all items that were known until now.
  void See(absl::Time now, int64_t ever);
  void SeeBatch(int64_t items);

  // Over the last minute, or as long as one has looked.
  double PerSecond() const;

  // The 99th percentile of the last batches; 0: there were none.
  double LargeBatch() const;

  // Time went backwards; rates begin anew.
  void Reset() { looks_.clear(); }

 private:
  struct Look {
    absl::Time at;
    int64_t ever;
  };

  std::deque<Look> looks_;
  std::deque<int64_t> batches_;
};

}  // namespace muster::scaling::policy
