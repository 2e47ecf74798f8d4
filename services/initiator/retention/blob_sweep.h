// SPDX-License-Identifier: Apache-2.0

// BlobSweep: deletes blobs that no batch needs and that their owners do not delete, because they
// died, or were dropped, before they could.
//
//   a blob                              belongs to                  which deletes it
//   batch-N-of-OWNER-item-I             item I of batch N           when N is over (remover.h)
//   batch-N-item-I-result-A-…           the result of attempt A     when the result is counted
//
// What stays are blobs of items that an initiator put and died before its ledger had the items, of
// results whose worker died before it sent them, and of results that were not counted, for they
// came twice or their queue was purged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_client.h"

namespace muster::initiator::retention {

// A younger blob may be of a message that is still under way: it is left alone.
inline constexpr absl::Duration kOrphanAge = absl::Hours(24);

// No initiator that is known has the batch, but one that is away may have it, and in its ledger
// dead-lettered items that a redrive needs. A ledger counts as lost when it is away and its blob is
// older than a batch is kept by default.
inline constexpr absl::Duration kLostLedgerAge = absl::Hours(24 * 400);

// Not thread-safe.
class BlobSweep {
 public:
  // Nothing is owned.
  struct Dependencies {
    ledger::BatchLedger* ledger = nullptr;
    report::ReportClient* report_client = nullptr;
    blob::BlobStore* blobs = nullptr;
    base::Clock* clock = nullptr;
    // OK: another initiator has the batch, and looks after its blobs. ledger::UnknownToAll: no
    // known initiator has it. Empty: no other initiator uses the blob store.
    std::function<absl::Status(uint64_t batch)> find_elsewhere = nullptr;
  };

  explicit BlobSweep(const Dependencies& dependencies) : deps_(dependencies) {}

  // Looks at up to `max` blobs, where the last call ended. True: that were all; the next call
  // begins anew. A blob of which it is not known whether it is needed stays, and the error is the
  // first such one.
  absl::StatusOr<bool> Step(size_t max);

  // Blobs that were deleted since the last pass began.
  size_t found() const { return found_; }

 private:
  absl::Status Look(const blob::BlobEntry& blob);
  absl::StatusOr<bool> IsNeeded(const item::BlobOwner& owner, absl::Time stored);
  absl::StatusOr<bool> IsNeededBy(const ledger::Batch& batch, const item::BlobOwner& owner);
  // Of a batch that the ledger here does not have.
  absl::StatusOr<bool> IsNeededElsewhere(uint64_t batch, absl::Time stored);

  const Dependencies deps_;
  std::unique_ptr<blob::BlobScan> scan_;  // null: between two passes
  size_t found_ = 0;
  // The last answer of find_elsewhere: blobs of a batch often come one after the other.
  std::optional<std::pair<uint64_t, absl::Status>> elsewhere_;
};

}  // namespace muster::initiator::retention
