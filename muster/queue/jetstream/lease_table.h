// SPDX-License-Identifier: Apache-2.0

// LeaseTable: the leases of one queue that this process holds, by the sequence of the message. The
// server knows when a lease lapses but does not report it, and it accepts an acknowledgement from
// any client.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"

namespace muster::queue::jetstream {

// A sweep reads all leases of the table.
inline constexpr absl::Duration kSweepPause = absl::Minutes(1);

struct Lease {
  int deliveries = 0;   // of its message, this one included
  absl::Duration ends;  // on the monotonic clock
  int attempts = 0;     // charged so far
  bool interrupted = false;
  bool began = false;  // an attempt was charged under this lease
  int64_t term = 0;    // HeldLog::term() when it was received; lost in a later one
};

// Thread-safe.
class LeaseTable {
 public:
  // Replaces the entry of the message.
  void Put(uint64_t sequence, const Lease& lease);
  // nullopt: this process does not hold that delivery.
  std::optional<Lease> Find(uint64_t sequence, int deliveries) const;
  void End(uint64_t sequence, int deliveries);
  void EndAll();
  bool empty() const;
  // Moves the end of all leases by `by`; negative: earlier.
  void Shift(absl::Duration by);
  // Removes unsettled leases that lapsed before `time`, unless the last sweep did so with a time
  // less than kSweepPause before it: each receive calls this.
  void Sweep(absl::Duration time);

 private:
  mutable base::Mutex mu_;
  absl::flat_hash_map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mu_);
  absl::Duration next_sweep_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace muster::queue::jetstream
