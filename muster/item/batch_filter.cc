// SPDX-License-Identifier: Apache-2.0
#include "muster/item/batch_filter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/item/promise.h"

namespace muster::item {
namespace {

using ledger::Batch;
using ledger::BatchPage;
using ledger::BatchState;

// Batches that are read at a time: few enough to hold, and enough that a rare one is not sought by
// reading each batch on its own.
constexpr size_t kLeastRead = 250;
constexpr size_t kMostRead = 1000;

bool WantsOpenAlone(const BatchFilter& filter) {
  return !filter.states.empty() && !filter.states.contains(BatchState::kComplete) &&
         !filter.states.contains(BatchState::kCancelled);
}

absl::StatusOr<BatchPage> FindOpen(ledger::BatchLedger& ledger, const BatchFilter& filter,
                                   uint64_t below, size_t max, absl::Time now) {
  BatchPage found;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> open, ledger.ListOpen());
  size_t read = 0;
  for (auto number = open.rbegin(); number != open.rend(); ++number) {
    if (*number >= below) continue;
    if (found.batches.size() == max || read == kMaxBatchesRead) {
      found.next_below = *number + 1;
      break;
    }
    ++read;
    absl::StatusOr<Batch> batch = ledger.Get(*number);
    if (!batch.ok()) continue;  // its problem is logged where it is stepped
    if (!filter.Matches(*batch, now)) continue;
    batch->content.clear();
    batch->job_definition.clear();
    found.batches.push_back(*std::move(batch));
  }
  return found;
}

}  // namespace

bool BatchFilter::Matches(const Batch& batch, absl::Time now) const {
  if (batch.undecided) return false;
  if (!job.empty() && batch.job != job) return false;
  if (!tenant.empty() && batch.tenant != tenant) return false;
  if (!states.empty() && !states.contains(batch.state)) return false;
  if (since.has_value() && batch.created < *since) return false;
  if (late) {
    const auto promise = StateOfPromise(batch, 0, 0, now);
    if (!promise.has_value() || promise->late_by <= absl::ZeroDuration()) return false;
  }
  if (hides_calls && !labels.contains(kCallLabel) && batch.labels.contains(kCallLabel)) {
    return false;
  }
  return std::all_of(labels.begin(), labels.end(), [&batch](const auto& label) {
    const auto has = batch.labels.find(label.first);
    return has != batch.labels.end() && has->second == label.second;
  });
}

absl::StatusOr<BatchPage> FindBatches(ledger::BatchLedger& ledger, const BatchFilter& filter,
                                      uint64_t below, size_t max, absl::Time now) {
  max = std::max<size_t>(max, 1);
  if (WantsOpenAlone(filter)) return FindOpen(ledger, filter, below, max, now);
  BatchPage found;
  found.next_below = below;
  for (size_t read = 0; found.next_below != 0 && read < kMaxBatchesRead;) {
    // At first as many as are wanted: most filters let the newest batches through.
    const size_t missing = max - found.batches.size();
    const size_t at_a_time = std::min(std::clamp(missing, read == 0 ? 1 : kLeastRead, kMostRead),
                                      kMaxBatchesRead - read);
    MUSTER_ASSIGN_OR_RETURN(BatchPage page, ledger.ListBelow(found.next_below, at_a_time));
    read += at_a_time;
    for (Batch& batch : page.batches) {
      if (found.batches.size() == max) return found;
      found.next_below = batch.number;
      if (filter.since.has_value() && batch.created < *filter.since - kSinceSlack) {
        found.next_below = 0;
        return found;
      }
      if (filter.Matches(batch, now)) found.batches.push_back(std::move(batch));
    }
    found.next_below = page.next_below;  // below batches that could not be read, too
  }
  return found;
}

}  // namespace muster::item
