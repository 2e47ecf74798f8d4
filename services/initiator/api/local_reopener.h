// SPDX-License-Identifier: Apache-2.0

// LocalReopener: reopens batches of this initiator's ledger, for a redrive, and has the scheduler
// step them.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/item/redrive.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_client.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/submit/handler_versions.h"

namespace muster::initiator::api {

// Thread-safe. Statuses as LedgerBatchReopener, and FailedPrecondition: the batch is bound to a
// version of the handler that no processor has.
class LocalReopener final : public item::BatchReopener {
 public:
  // Nothing is owned; all of it outlives this.
  LocalReopener(ledger::BatchLedger* ledger, report::ReportClient* report_client,
                submit::HandlerVersions* versions, batch::BatchScheduler* scheduler)
      : ledger_(ledger),
        versions_(versions),
        reopener_(ledger, report_client),
        scheduler_(scheduler) {}

  absl::StatusOr<item::RefusedItems> Grant(uint64_t batch,
                                           absl::Span<const uint64_t> items) override;

 private:
  absl::Status CheckVersion(uint64_t batch) const;

  ledger::BatchLedger* const ledger_;        // not owned
  submit::HandlerVersions* const versions_;  // not owned
  item::LedgerBatchReopener reopener_;
  batch::BatchScheduler* const scheduler_;  // not owned
};

}  // namespace muster::initiator::api
