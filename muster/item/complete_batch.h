// SPDX-License-Identifier: Apache-2.0

// CheckCounted: whether the report proves what the ledger says of a batch. They may differ where
// another controller counted the batch into a report of its own, or where the report was put back
// from an older copy.
#pragma once

#include "absl/status/status.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"

namespace muster::item {

// `counted` was read after `batch`. DataLoss, for people: the batch is complete in the ledger, and
// its receipt is not in the report, or proves other counts; OK of a batch that is not complete.
absl::Status CheckCounted(const ledger::Batch& batch, const report::Progress& counted);

}  // namespace muster::item
