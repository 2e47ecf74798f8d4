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
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/retry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"
#include "services/controller/controller.h"
#include "services/controller/ledger_cache.h"

namespace muster::controller {

// Several batches are completed at a time: most of it is waiting for their initiators. Not
// thread-safe. A transient error says what stands in the way of one batch alone; any other is a
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

  // Completes those of the batches of which every item is counted. Answers what stands in the way
  // of those that it could not complete.
  absl::StatusOr<std::map<uint64_t, absl::Status>> CompleteDone(const std::set<uint64_t>& batches);
  // The same, of batches that a commit has brought to `progresses`, and whose progress it tells.
  absl::StatusOr<std::map<uint64_t, absl::Status>> FinishCounted(
      absl::Span<const report::Progress> progresses, const OutcomeInHand& outcome_in_hand);

  // As the report has it. NotFound: it has no such batch.
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch);

 private:
  // A batch on its way to its end. Each has a thread of its own meanwhile, which does not touch the
  // cache.
  struct Finishing {
    const report::Progress* progress = nullptr;
    std::optional<ledger::BatchView> sealed;  // as LedgerCache has it, where a caller waits
    bool lacks_items = false;
    // What came of it.
    absl::Status end;
    std::optional<absl::Status> marked;  // by the ledger, if it was asked to
    bool complete = false;
  };

  // `outcome_in_hand`: null: the batches follow no commit.
  absl::StatusOr<std::map<uint64_t, absl::Status>> FinishAll(
      absl::Span<const report::Progress> progresses, const OutcomeInHand& outcome_in_hand);
  absl::Status Finish(Finishing* batch, const OutcomeInHand& outcome_in_hand);
  // The batch as its ledger has it; whether it may have been marked complete is certain.
  absl::StatusOr<ledger::BatchView> FindForFinish(const Finishing& batch);
  absl::Status MarkComplete(const ledger::BatchView& view, const OutcomeInHand& outcome_in_hand);

  const Dependencies deps_;
  const Events* const events_;       // not owned
  LedgerCache* const ledger_cache_;  // not owned
  const std::stop_token stop_;
  base::RetryPolicy retry_;
};

}  // namespace muster::controller
