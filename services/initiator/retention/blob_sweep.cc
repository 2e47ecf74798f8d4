// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/blob_sweep.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::initiator::retention {

absl::StatusOr<bool> BlobSweep::Step(size_t max) {
  if (scan_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(scan_, deps_.blobs->Scan());
    found_ = 0;
  }
  const absl::StatusOr<std::vector<blob::BlobEntry>> page = scan_->Next(max);
  if (!page.ok() || page->empty()) {
    scan_.reset();
    elsewhere_.reset();
    MUSTER_RETURN_IF_ERROR(page.status());
    return true;
  }
  absl::Status failed;
  for (const blob::BlobEntry& blob : *page) {
    failed.Update(base::Annotate(Look(blob), absl::StrCat("blob '", blob.name, "'")));
  }
  if (!failed.ok()) return failed;
  return false;
}

absl::Status BlobSweep::Look(const blob::BlobEntry& blob) {
  if (deps_.clock->Now() - blob.stored < kOrphanAge) return absl::OkStatus();
  const std::optional<item::BlobOwner> owner = item::OwnerOfBlob(blob.name);
  if (!owner.has_value()) return absl::OkStatus();  // not muster's, or a newer one's
  MUSTER_ASSIGN_OR_RETURN(const bool needed, IsNeeded(*owner, blob.stored));
  if (needed) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(deps_.blobs->Delete(blob.name));
  ++found_;
  base::Log(base::kInfo, "a blob without an owner is deleted", {{"blob", blob.name}});
  return absl::OkStatus();
}

absl::StatusOr<bool> BlobSweep::IsNeeded(const item::BlobOwner& owner, absl::Time stored) {
  // A batch is in its ledger before its first blob is put.
  const absl::StatusOr<ledger::Batch> batch = deps_.ledger->Get(owner.batch);
  if (absl::IsNotFound(batch.status())) return IsNeededElsewhere(owner.batch, stored);
  MUSTER_RETURN_IF_ERROR(batch.status());
  // Another initiator may have drawn the same number.
  const bool is_others = owner.owner != batch->owner && !(owner.is_result && !batch->disowned);
  if (is_others) return IsNeededElsewhere(owner.batch, stored);
  return IsNeededBy(*batch, owner);
}

absl::StatusOr<bool> BlobSweep::IsNeededBy(const ledger::Batch& batch,
                                           const item::BlobOwner& owner) {
  if (!ledger::IsOver(batch.state)) return true;
  const bool may_be_redriven =
      batch.state == ledger::BatchState::kComplete && !batch.items_deleted && !owner.is_result;
  if (!may_be_redriven) return false;
  const absl::StatusOr<std::vector<uint64_t>> dead =
      deps_.report_client->DeadLetteredItems(batch.number, owner.item, 1);
  // The report of an older muster, or one that has lost the batch, tells nothing: the blob goes
  // with the items.
  if (absl::IsUnimplemented(dead.status()) || absl::IsNotFound(dead.status())) return true;
  MUSTER_RETURN_IF_ERROR(dead.status());
  if (!dead->empty() && dead->front() == owner.item) return true;
  // A redrive that began meanwhile has opened the batch before it changed the report.
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch now, deps_.ledger->Get(batch.number));
  return !ledger::IsOver(now.state);
}

absl::StatusOr<bool> BlobSweep::IsNeededElsewhere(uint64_t batch, absl::Time stored) {
  if (!deps_.find_elsewhere) return false;
  if (!elsewhere_.has_value() || elsewhere_->first != batch) {
    elsewhere_.emplace(batch, deps_.find_elsewhere(batch));
  }
  if (elsewhere_->second.ok()) return true;
  if (!ledger::IsUnknownToAll(elsewhere_->second)) return elsewhere_->second;
  return deps_.clock->Now() - stored < kLostLedgerAge;
}

}  // namespace muster::initiator::retention
