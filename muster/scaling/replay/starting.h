// Starting: replicas between the order to start and their readiness.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace muster::scaling::replay {

class Starting {
 public:
  void Add(int64_t ready_us) {
    ready_us_.insert(std::upper_bound(ready_us_.begin(), ready_us_.end(), ready_us), ready_us);
  }

  // Forgets the one that needs longest; there must be one.
  void CancelLast() { ready_us_.pop_back(); }

  // How many are ready by `now_us`; they are starting no more.
  int TakeReady(int64_t now_us) {
    const auto end = std::upper_bound(ready_us_.begin(), ready_us_.end(), now_us);
    const auto ready = static_cast<int>(end - ready_us_.begin());
    ready_us_.erase(ready_us_.begin(), end);
    return ready;
  }

  int size() const { return static_cast<int>(ready_us_.size()); }
  bool empty() const { return ready_us_.empty(); }
  int64_t earliest_us() const { return ready_us_.front(); }
  const std::vector<int64_t>& ready_us() const { return ready_us_; }

 private:
  std::vector<int64_t> ready_us_;  // earliest first
};

}  // namespace muster::scaling::replay
