// SPDX-License-Identifier: Apache-2.0

// StoppedUploads: the uploads of an initiator that are not whole, and that no client sends. Each
// waits for its client to go on, until it expires.
//
//   sender gone ──Add──► waits ──Remove, a client goes on or the batch has ended──► forgotten
//                          │
//                          └─ nothing arrived for upload.expires of its job ─► Expired
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::initiator::retention {

// No further upload begins while so many are stopped, or while they have so many bytes together.
// Uploads that clients send do not count: StreamLimiter bounds those.
struct UploadLimits {
  // Four times as many as are sent at a time. Each takes about 36 KiB of memory.
  int64_t max_stopped = 1000;
  int64_t max_stopped_bytes = int64_t{64} << 30;
};

// Thread-safe.
class StoppedUploads {
 public:
  // `clock` is not owned.
  StoppedUploads(const UploadLimits& limits, base::Clock* clock) : limits_(limits), clock_(clock) {}

  // No client sends the upload, of which `bytes` have arrived. Replaces what was known of it.
  // `expires_at` is monotonic.
  void Add(uint64_t batch, uint64_t bytes, absl::Duration expires_at) ABSL_LOCKS_EXCLUDED(mu_);
  // Fine for one that is not there.
  void Remove(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // ResourceExhausted, reason TOO_MANY_STOPPED_UPLOADS, with the time to try again: no further
  // upload may begin.
  absl::Status CheckRoom() ABSL_LOCKS_EXCLUDED(mu_);

  struct Totals {
    size_t uploads = 0;
    uint64_t bytes = 0;
  };
  Totals totals() const ABSL_LOCKS_EXCLUDED(mu_);

  // Up to `max` that have expired, the longest expired first.
  std::vector<uint64_t> Expired(size_t max) ABSL_LOCKS_EXCLUDED(mu_);
  // False: also when a client went on with it after Expired.
  bool HasExpired(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // It could not be given up: it expires again after `pause`. Fine for one that is not there.
  void Postpone(uint64_t batch, absl::Duration pause) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Stopped {
    uint64_t bytes = 0;
    absl::Duration expires_at = {};  // monotonic
  };

  void AddLocked(uint64_t batch, const Stopped& stopped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveLocked(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const UploadLimits limits_;
  base::Clock* const clock_;  // not owned

  mutable base::Mutex mu_;
  std::map<uint64_t, Stopped> stopped_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<absl::Duration, uint64_t>> by_expiry_ ABSL_GUARDED_BY(mu_);  // of stopped_
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;                                       // likewise
};

}  // namespace muster::initiator::retention
