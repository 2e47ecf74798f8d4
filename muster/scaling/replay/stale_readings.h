// StaleReadings: queue statistics as they were some seconds ago.
#pragma once

#include <deque>
#include <vector>

#include "muster/scaling/policy/observation.h"

namespace muster::scaling::replay {

class StaleReadings {
 public:
  explicit StaleReadings(absl::Duration delay) : delay_(delay) {}

  // Remembers the readings, and replaces them by the newest that are old enough; by none while
  // there are none.
  void Apply(absl::Time now, std::vector<scaling::policy::QueueReading>* queues) {
    if (delay_ <= absl::ZeroDuration()) return;
    remembered_.push_back(queues->front());
    while (remembered_.size() > 1 && remembered_[1].at + delay_ <= now) remembered_.pop_front();
    if (remembered_.front().at + delay_ <= now) {
      queues->front() = remembered_.front();
    } else {
      queues->clear();
    }
  }

 private:
  const absl::Duration delay_;
  std::deque<scaling::policy::QueueReading> remembered_;
};

}  // namespace muster::scaling::replay
