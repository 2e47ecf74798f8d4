// SPDX-License-Identifier: Apache-2.0

// AwayLedgers: the batches whose ledgers did not answer, or are unknown to all initiators; how long
// their results wait; and when they have waited in vain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/lru_map.h"

namespace muster::controller {

// Unavailable: the initiator of the batch has put its items, and has not told the report of it yet.
// It does both at a time, so that lasts some milliseconds.
absl::Status NotRegisteredYet(uint64_t batch);

// Batches that are remembered. Beyond that the one that was noted least recently goes: it is noted
// again when its results come again, and its grace begins anew.
inline constexpr size_t kMaxAway = 1000;

// Not thread-safe.
class AwayLedgers {
 public:
  // `unknown_grace`: as Options::unknown_batch_grace. `clock` is not owned.
  AwayLedgers(absl::Duration unknown_grace, base::Clock* clock)
      : unknown_grace_(unknown_grace), clock_(clock) {}

  // OK: the ledger of the batch may be asked. Unavailable: it did not answer a moment ago.
  // InvalidArgument: all initiators have not known the batch for the grace; its results will never
  // count.
  absl::Status MayAsk(uint64_t batch) const;

  // The ledger was asked and is away, by the transient error `why`. Answers as MayAsk, but `why`
  // for Unavailable.
  absl::Status NoteAway(uint64_t batch, const absl::Status& why);
  // The ledger has answered. Results that came while it was away may be put back still.
  void NoteThere(uint64_t batch);

  // Whether what was noted last is no more than the usual start of a batch.
  bool IsUsual(uint64_t batch) const;

  // Whether all known initiators have answered that they do not have the batch.
  bool IsUnknownToAll(uint64_t batch) const;

  // How long a result of a batch that is away waits before it comes again.
  absl::Duration PauseOf(uint64_t batch) const;

  // When to look again for results that were put back; infinite: there are none. Forgets batches
  // whose results have not come again even `lease` after all were due: another controller has
  // counted them.
  absl::Duration ShortestPause(absl::Duration lease);

 private:
  struct Away {
    absl::Duration until;  // monotonic; when to ask again
    absl::Duration pause;  // before that
    bool usual = false;    // NotRegisteredYet, and not for long
    bool there = false;    // it has answered since; the batch is only kept for what was put back
    // Since when all known initiators have answered that they do not have the batch; unset: one did
    // not answer.
    std::optional<absl::Duration> unknown_since;
  };

  // InvalidArgument once the batch has been unknown to all for the grace.
  absl::Status CheckGrace(uint64_t batch, const Away& away) const;

  const absl::Duration unknown_grace_;
  base::Clock* const clock_;  // not owned
  base::LruMap<uint64_t, Away> away_{kMaxAway};
};

}  // namespace muster::controller
