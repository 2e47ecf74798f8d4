// SPDX-License-Identifier: Apache-2.0
#include "muster/item/complete_batch.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace muster::item {

absl::Status CheckCounted(const ledger::Batch& batch, const report::Progress& counted) {
  if (batch.state != ledger::BatchState::kComplete) return absl::OkStatus();
  const bool is_all = static_cast<uint64_t>(counted.items()) == batch.items &&
                      static_cast<uint64_t>(counted.transactions) == batch.transactions;
  if (is_all && counted.receipt_revision > 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "it is complete in the ledger, and the report has ", counted.transactions, " of its ",
      batch.transactions, " transactions and ", counted.receipt_revision > 0 ? "an older" : "no",
      " receipt: put the report back that it was counted into, or stop the mesh and have `muster "
      "check --repair` open the batch, which counts what is missing"));
}

}  // namespace muster::item
