#include "muster/item/batch_reopener.h"

#include "muster/base/failpoint.h"
#include "muster/base/status_macros.h"

namespace muster::item {

absl::Status LedgerBatchReopener::Grant(uint64_t batch, absl::Span<const uint64_t> items) {
  const absl::Status reopened = ledger_->Reopen(batch);
  if (!reopened.ok() && !absl::IsNotFound(reopened)) return reopened;
  MUSTER_FAILPOINT("redrive.after_ledger");
  MUSTER_RETURN_IF_ERROR(report_->ReopenDeadLettered(batch, items));
  MUSTER_FAILPOINT("redrive.after_report");
  // With what it had, it may have become complete in between.
  const absl::Status again = ledger_->Reopen(batch);
  return absl::IsNotFound(again) ? absl::OkStatus() : again;
}

}  // namespace muster::item
