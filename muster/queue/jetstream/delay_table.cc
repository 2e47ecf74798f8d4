// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/delay_table.h"

#include "absl/container/flat_hash_map.h"

namespace muster::queue::jetstream {

void DelayTable::Put(const Delivery& delivery, absl::Duration due, absl::Duration now) {
  base::MutexLock lock(&mu_);
  if (delays_.size() >= kMaxDelays) {
    absl::erase_if(delays_, [now](const auto& entry) { return entry.second.due <= now; });
  }
  if (delays_.size() >= kMaxDelays && !delays_.contains(delivery.sequence)) return;
  delays_[delivery.sequence] = {delivery.ack_subject, due};
}

std::vector<DelayTable::Delay> DelayTable::After(absl::Duration now) const {
  base::MutexLock lock(&mu_);
  std::vector<Delay> after;
  for (const auto& [sequence, delay] : delays_) {
    if (delay.due > now) after.push_back(delay);
  }
  return after;
}

void DelayTable::Clear() {
  base::MutexLock lock(&mu_);
  delays_.clear();
}

}  // namespace muster::queue::jetstream
