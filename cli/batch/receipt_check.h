// SPDX-License-Identifier: Apache-2.0

// CheckReceipt: holds a batch to its receipt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"

namespace muster::cli {

// Answers one line for each difference from the receipt; empty: there is none. The report's rows
// must add up to the receipt. The receipt must match the ledger's batch: its job, its revision, all
// of its items and transactions. Each item's content must be what the ledger recorded when the
// batch was split, unless its retention has deleted that.
absl::StatusOr<std::vector<std::string>> CheckReceipt(uint64_t batch, ledger::BatchLedger& ledger,
                                                      report::ReportReader& reader);

}  // namespace muster::cli
