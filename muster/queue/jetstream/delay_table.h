// SPDX-License-Identifier: Apache-2.0

// DelayTable: the messages of one queue that this process gave back with a delay after a handler
// had begun on them, until they are due.
//
// The server keeps a delay as what is left of a lease, so each delay grows with the duration of
// leases. While it lasts nobody has the message, and whoever gave it back may put the delay again.
// Without a handler, such a delay may be a lease: a gateway gives its clients the leases that they
// ask for in this way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/queue/jetstream/stream_layout.h"

namespace muster::queue::jetstream {

// Of one queue; what is given back beyond this has no entry.
inline constexpr size_t kMaxDelays = 4096;

// Thread-safe.
class DelayTable {
 public:
  struct Delay {
    std::string ack_subject;  // of the delivery that was given back
    absl::Duration due;       // monotonic
  };

  // Replaces the entry of the message.
  void Put(const Delivery& delivery, absl::Duration due, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns those that are due after `now`.
  std::vector<Delay> After(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mu_);
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable base::Mutex mu_;
  absl::flat_hash_map<uint64_t, Delay> delays_ ABSL_GUARDED_BY(mu_);  // by the sequence
};

}  // namespace muster::queue::jetstream
