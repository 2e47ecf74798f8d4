// SPDX-License-Identifier: Apache-2.0

// BatchCompleter: completes a batch once the report has counted all of its items.
//
//   all items counted (report) ─► owner held against the ledger ─► receipt (report)
//                                                                    └─► complete (ledger)
//
// Each step may be done anew: a batch that completes again after a redrive gets a new receipt, and
// issuing a receipt twice for the same counts changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/retry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "services/controller/controller.h"
#include "services/controller/ledger_cache.h"

namespace muster::controller {

// Not thread-safe. A transient error says what stands in the way of one batch alone; any other is a
// store's.
class BatchCompleter {
 public:
  // What became of the batch's records, if all of them were in the hand that was just counted.
  using OutcomeInHand =
      std::function<std::optional<ledger::BatchOutcome>(const ledger::Batch& batch)>;

  // `events` and `ledger_cache` are not owned, and outlive the completer as the targets of
  // `dependencies` do. `stop` ends the waits between retries.
  BatchCompleter(const Dependencies& dependencies, const Events* events, LedgerCache* ledger_cache,
                 std::stop_token stop)
      : deps_(dependencies),
        events_(events),
        ledger_cache_(ledger_cache),
        stop_(std::move(stop)),
        retry_({}, dependencies.clock) {}

  // Completes `batch` if every item of it is counted.
  absl::Status CompleteIfDone(uint64_t batch);
  // The same, of a batch that is known to be at `progress`. `outcome_in_hand`: of the commit that
  // this follows; null: it follows none.
  absl::Status Finish(const report::Progress& progress, const OutcomeInHand& outcome_in_hand);

  // As the report has it. NotFound: it has no such batch.
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch);

 private:
  // The batch as its ledger has it; whether it may have been marked complete is certain.
  absl::StatusOr<ledger::BatchView> FindForFinish(uint64_t batch);
  absl::Status MarkComplete(const ledger::BatchView& view, const OutcomeInHand& outcome_in_hand);

  const Dependencies deps_;
  const Events* const events_;       // not owned
  LedgerCache* const ledger_cache_;  // not owned
  const std::stop_token stop_;
  base::RetryPolicy retry_;
};

}  // namespace muster::controller
