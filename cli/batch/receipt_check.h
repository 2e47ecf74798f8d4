// Checking a receipt: against the report's own rows, and those against the ledger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::cli {

// One line for each thing that is not as the receipt says; empty: all is well. Beyond what the
// report's rows add up to, the receipt must tell of the batch that the ledger knows: its job, its
// revision, all of its items and transactions; and each item's content must be what the ledger
// recorded when it was split.
absl::StatusOr<std::vector<std::string>> CheckReceipt(uint64_t batch, ledger::BatchLedger& ledger,
                                                      report::ReportReader& reader);

// The receipt's lines as one JSON object.
nlohmann::ordered_json ReceiptJson(const report::StoredReceipt& receipt);

}  // namespace muster::cli
