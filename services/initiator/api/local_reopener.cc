// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/local_reopener.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/status.h"

namespace muster::initiator::api {
namespace {

// By then a redrive has put a page of poison back into its queue.
constexpr absl::Duration kRedriveTime = absl::Seconds(5);

}  // namespace

absl::StatusOr<item::RefusedItems> LocalReopener::Grant(uint64_t batch,
                                                        absl::Span<const uint64_t> items) {
  MUSTER_RETURN_IF_ERROR(CheckVersion(batch));
  absl::StatusOr<item::RefusedItems> refused = reopener_.Grant(batch, items);
  // After an error, too: the ledger may have opened the batch, and only the scheduler completes it
  // again. Not at once: the items are not in their queue yet, and the scheduler must not take them
  // for lost.
  scheduler_->Advance(batch, kRedriveTime);
  return refused;
}

// An open batch that has a receipt can neither be cancelled nor retried: it would wait for ever for
// a version that was mended.
absl::Status LocalReopener::CheckVersion(uint64_t number) const {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, ledger_->Get(number));
  if (batch.handler_version.empty() || !versions_->NoneFits(batch.job, batch.handler_version)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "batch ", number, " is bound to version ", batch.handler_version, " of the handler of job ",
      batch.job, ", which no processor has: `muster batch retry ", number,
      " --all` retries with the version of now"));
}

}  // namespace muster::initiator::api
