// LedgerBatchReopener: gives items another chance in the two records that rule a batch.
#pragma once

#include <cstdint>

#include "muster/item/redrive.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/counting_desk.h"

namespace muster::item {

// First the ledger, where the batch is open again, then the report, where the items have no row any
// more: cut short in between, the batch completes again with what it had.
//
// Thread-safe. Statuses are those of the two; a batch that the ledger does not know is the report's
// alone.
class LedgerBatchReopener final : public BatchReopener {
 public:
  // Neither is owned; both outlive this.
  LedgerBatchReopener(ledger::BatchLedger* ledger, report::ReportClient* report)
      : ledger_(ledger), report_(report) {}

  absl::Status Grant(uint64_t batch, absl::Span<const uint64_t> items) override;

 private:
  ledger::BatchLedger* const ledger_;   // not owned
  report::ReportClient* const report_;  // not owned
};

}  // namespace muster::item
