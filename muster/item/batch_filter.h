// SPDX-License-Identifier: Apache-2.0

// BatchFilter: which batches a list shows, and the search for them in a ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/item/labels.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::item {

// What a batch must be; each part that is empty lets every batch through.
struct BatchFilter {
  std::string job = "";
  std::string tenant = "";
  std::set<ledger::BatchState> states = {};
  std::optional<absl::Time> since = std::nullopt;  // created then or later
  bool late = false;   // later than promised when it was complete, or by now
  Labels labels = {};  // all of these
  // No batch that calls are made into, unless `labels` names theirs.
  bool hides_calls = false;

  // Batches that are undecided match no filter: they may be withdrawn without a trace.
  bool Matches(const ledger::Batch& batch, absl::Time now) const;
};

// Batches that one search reads: it never reads a whole ledger, and may so find fewer than there
// are, or none.
inline constexpr size_t kMaxBatchesRead = 10'000;

// Numbers grow with time, but for clocks that are set back: a search for batches since a time ends
// at one that is so much older.
inline constexpr absl::Duration kSinceSlack = absl::Hours(1);

// Up to `max` of the batches below `below` that the filter lets through, in falling order of
// number; at least one is asked for. Reads at most kMaxBatchesRead batches, and holds at most 1,000
// at a time. A filter for open and sealed batches alone reads only these.
absl::StatusOr<ledger::BatchPage> FindBatches(ledger::BatchLedger& ledger,
                                              const BatchFilter& filter, uint64_t below, size_t max,
                                              absl::Time now);

}  // namespace muster::item
