// SPDX-License-Identifier: Apache-2.0

// BatchMetrics: how far the open batches of this initiator are, by the input queue of their job,
// what it holds of uploads that were cut off, and which batches were late. A batch is never a label
// of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/telemetry/registry.h"
#include "services/initiator/batch/scheduler.h"

namespace muster::initiator {

// Open batches that one scrape looks at: each is a record of the ledger, read in some microseconds.
inline constexpr size_t kMaxBatchesRead = 2000;
// Late batches that are remembered, so that one that is stepped once more does not count again.
inline constexpr size_t kMaxLateBatches = 10'000;

// Sets the progress, the end in sight and the nearest deadline of the `open` batches, by queue.
void ShowOpenBatches(const std::vector<batch::BatchStatus>& open, absl::Time now,
                     telemetry::Samples* samples);

// Thread-safe.
class BatchMetrics {
 public:
  // `clock` and `registry` are not owned; no registry: nothing is recorded.
  BatchMetrics(base::Clock* clock, telemetry::Registry* registry);

  // Shows the batches of `scheduler`, which is not owned, until Close.
  void Watch(batch::BatchScheduler* scheduler);
  void Close() { reading_.reset(); }

  // The batch is complete. Calling it again with the same batch is fine.
  void NoteComplete(const ledger::Batch& batch) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  base::Clock* const clock_;             // not owned
  telemetry::Registry* const registry_;  // not owned
  const telemetry::Counters<1> violations_;
  base::Mutex mu_;
  std::set<uint64_t> late_ ABSL_GUARDED_BY(mu_);  // the latest
  std::unique_ptr<telemetry::Reading> reading_;
};

}  // namespace muster::initiator
