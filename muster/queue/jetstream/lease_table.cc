// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/lease_table.h"

namespace muster::queue::jetstream {

void LeaseTable::Put(uint64_t sequence, const Lease& lease) {
  base::MutexLock lock(&mu_);
  leases_[sequence] = lease;
}

std::optional<Lease> LeaseTable::Find(uint64_t sequence, int deliveries) const {
  base::MutexLock lock(&mu_);
  const auto found = leases_.find(sequence);
  if (found == leases_.end() || found->second.deliveries != deliveries) return std::nullopt;
  return found->second;
}

void LeaseTable::End(uint64_t sequence, int deliveries) {
  base::MutexLock lock(&mu_);
  const auto found = leases_.find(sequence);
  if (found != leases_.end() && found->second.deliveries == deliveries) leases_.erase(found);
}

void LeaseTable::EndAll() {
  base::MutexLock lock(&mu_);
  leases_.clear();
}

bool LeaseTable::empty() const {
  base::MutexLock lock(&mu_);
  return leases_.empty();
}

void LeaseTable::Shift(absl::Duration by) {
  base::MutexLock lock(&mu_);
  for (auto& [sequence, lease] : leases_) lease.ends += by;
}

void LeaseTable::Sweep(absl::Duration time) {
  base::MutexLock lock(&mu_);
  if (time < next_sweep_) return;
  next_sweep_ = time + kSweepPause;
  absl::erase_if(leases_, [time](const auto& entry) { return entry.second.ends < time; });
}

}  // namespace muster::queue::jetstream
