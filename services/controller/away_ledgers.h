// AwayLedgers: the batches whose ledgers did not answer, or are unknown to all initiators; how long
// their results wait; and when they have waited in vain.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::controller {

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
  void NoteThere(uint64_t batch) { away_.erase(batch); }

  // How long a result of a batch that is away waits before it comes again.
  absl::Duration PauseOf(uint64_t batch) const;

  // The shortest pause of all batches; infinite: none is away. Forgets batches whose results have
  // not come again even `lease` after all were due: another controller has counted them.
  absl::Duration ShortestPause(absl::Duration lease);

 private:
  struct Away {
    absl::Duration until;  // monotonic; when to ask again
    absl::Duration pause;  // before that
    // Since when all known initiators have answered that they do not have the batch; unset: one did
    // not answer.
    std::optional<absl::Duration> unknown_since;
  };

  // InvalidArgument once the batch has been unknown to all for the grace.
  absl::Status CheckGrace(uint64_t batch, const Away& away) const;

  const absl::Duration unknown_grace_;
  base::Clock* const clock_;  // not owned
  std::map<uint64_t, Away> away_;
};

}  // namespace muster::controller
