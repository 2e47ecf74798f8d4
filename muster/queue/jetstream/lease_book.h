// LeaseTable: the leases of one queue that this process holds. The server knows when a lease
// lapses, but does not say so; and it takes an acknowledgement from whoever sends it.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"

namespace muster::queue::jetstream {

struct Lease {
  int deliveries = 0;   // of its message, this one included
  absl::Duration ends;  // on the monotonic clock
  int attempts = 0;     // charged so far
  bool interrupted = false;
  bool began = false;  // an attempt was charged under this lease
};

// By the sequence of the message. Thread-safe.
class LeaseTable {
 public:
  // Replaces what was known of the message.
  void Put(uint64_t sequence, const Lease& lease);
  // nullopt: this process does not hold that delivery.
  std::optional<Lease> Find(uint64_t sequence, int deliveries) const;
  void End(uint64_t sequence, int deliveries);
  void EndAll();
  // All of them end so much later; negative: earlier.
  void Shift(absl::Duration by);
  // Forgets those that lapsed before `time` and that nobody settled.
  void Sweep(absl::Duration time);
  // Those that last beyond `time`.
  int64_t CountAlive(absl::Duration time) const;

 private:
  mutable base::Mutex mu_;
  absl::flat_hash_map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::queue::jetstream
