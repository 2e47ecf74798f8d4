// SPDX-License-Identifier: Apache-2.0
#include "muster/ledger/batch_ledger.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"

namespace muster::ledger {
namespace {

// The payload of an UnknownToAll.
constexpr char kUnknownToAll[] = "muster/batch-unknown-to-all";

}  // namespace

absl::string_view BatchStateName(BatchState state) {
  switch (state) {
    case BatchState::kOpen:
      return "open";
    case BatchState::kSealed:
      return "sealed";
    case BatchState::kComplete:
      return "complete";
    case BatchState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

absl::Status UnknownToAll(uint64_t batch, size_t asked) {
  absl::Status status = absl::UnavailableError(
      absl::StrCat("none of the ", asked, " initiators that are known has batch ", batch));
  status.SetPayload(kUnknownToAll, absl::Cord("1"));
  return status;
}

bool IsUnknownToAll(const absl::Status& status) {
  return status.GetPayload(kUnknownToAll).has_value();
}

bool IsOver(BatchState state) {
  return state == BatchState::kComplete || state == BatchState::kCancelled;
}

absl::StatusOr<BatchView> BatchRecords::View(uint64_t batch, size_t max_items) {
  BatchView view;
  MUSTER_ASSIGN_OR_RETURN(view.batch, Get(batch));
  MUSTER_ASSIGN_OR_RETURN(view.items, Items(batch, 0, max_items));
  return view;
}

absl::StatusOr<bool> IsOver(BatchRecords& records, uint64_t batch) {
  const absl::StatusOr<Batch> found = records.Get(batch);
  if (absl::IsNotFound(found.status())) return true;
  MUSTER_RETURN_IF_ERROR(found.status());
  return IsOver(found->state);
}

Retention RetentionOf(const Batch& batch) {
  Retention retention = batch.retention.value_or(Retention());
  if (batch.upload_expired) retention.items = retention.batch = retention.content;
  return retention;
}

NextRemoval::NextRemoval(const Batch& batch) {
  MUSTER_CHECK(IsOver(batch.state), "batch ", batch.number, " is ", BatchStateName(batch.state));
  const Retention retention = RetentionOf(batch);
  const absl::Time end = batch.completed.value_or(batch.created);
  const bool content_is_gone = batch.content_deleted && !batch.request_claimed;
  if (!batch.blobs_deleted && !content_is_gone && !batch.items_deleted) {
    what = Removal::kBlobs;
    at = end + std::min(kBlobsGrace, retention.content);
  } else if (!content_is_gone && !batch.items_deleted) {
    what = Removal::kContent;
    at = end + retention.content;
  } else if (!batch.items_deleted) {
    what = Removal::kItems;
    at = end + retention.items;
  } else {
    what = Removal::kBatch;
    at = end + retention.batch;
  }
}

}  // namespace muster::ledger
