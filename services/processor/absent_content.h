// SPDX-License-Identifier: Apache-2.0

// AbsentContent: decides what becomes of items whose content cannot be read. None of them is
// charged an attempt, for the fault is not theirs.
//
//   the content cannot be read ──► the item comes again, after a pause that grows
//   … for kAbsenceGrace        ──► the item leaves the queue: its initiator, once it is back, finds
//                                  it lost, and puts it again
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/lru_map.h"
#include "muster/base/mutex.h"
#include "muster/handler/health_troubles.h"

namespace muster::processor {

// Longer than a restart of an initiator, or its move to another host.
inline constexpr absl::Duration kAbsenceGrace = absl::Minutes(10);
// Between two tries of one item: it is back at work so soon after its content can be read again.
inline constexpr absl::Duration kMinAbsencePause = absl::Milliseconds(250);
inline constexpr absl::Duration kMaxAbsencePause = absl::Seconds(4);
// Batches that are remembered; beyond that the one whose items came least recently is
// forgotten, and its grace begins anew.
inline constexpr size_t kMaxAbsent = 1000;

// Thread-safe.
class AbsentContent {
 public:
  // What becomes of an item.
  struct Fate {
    bool leaves = false;  // the queue
    absl::Duration pause = absl::ZeroDuration();
  };

  // `clock` is not owned. `health` is told what keeps the items waiting; may be null.
  AbsentContent(base::Clock* clock, std::shared_ptr<handler::HealthTroubles> health)
      : clock_(clock), health_(std::move(health)) {}

  // The content of an item of `batch` could not be read, by the error `why`, in its
  // `dequeue_count`th receive. Logs it once for each batch.
  Fate Judge(uint64_t batch, int dequeue_count, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  // The content of an item of `batch` was read.
  void NoteRead(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  base::Clock* const clock_;  // not owned
  const std::shared_ptr<handler::HealthTroubles> health_;
  std::atomic<bool> any_ = false;  // none, mostly: then no reader locks
  base::Mutex mu_;
  // Monotonic; since when the content of the batch cannot be read.
  base::LruMap<uint64_t, absl::Duration> since_ ABSL_GUARDED_BY(mu_){kMaxAbsent};
};

}  // namespace muster::processor
