// SPDX-License-Identifier: Apache-2.0

// BatchOpener: finds the batch that a submission of an input continues or repeats, or records a new
// one. RecordUnderNewNumber: gives a new batch its number.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/trace_context.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/sync/unique_id_generator.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::batch {

// The record of the sync store that holds the next batch number; the same for all initiators.
inline constexpr char kBatchNumbers[] = "batch-numbers";
// One batch in a hundred is traced through every span, at a cost that does not show.
inline constexpr double kDefaultTraceSample = 0.01;

// Records `batch`, with its first `items`, under the next free number. Calls `on_number`, if it is
// set, with the numbered batch before the batch is recorded; its error is returned and nothing is
// recorded.
absl::Status RecordUnderNewNumber(
    ledger::BatchLedger* ledger, sync::UniqueIdGenerator* numbers, ledger::Batch* batch,
    absl::Span<const ledger::ItemBoundary> items,
    const std::function<absl::Status(ledger::Batch*)>& on_number = {});

struct SubmitRequest {
  std::string request_id;
  std::string handler_version;
  std::string tenant;
  // A finished batch of another job revision or handler version does not prevent a new batch, which
  // replaces it. False when the submitter chose the request id: one request id never makes a second
  // batch.
  bool allow_new_revision = false;
  // Makes a new batch also where the same input was worked through before. A batch of the same
  // input that is not complete goes on all the same: it would count the input beside the new one.
  bool always_new = false;
  std::optional<base::TraceContext> trace = std::nullopt;  // none: the batch begins a trace
  std::optional<absl::Duration> sla = std::nullopt;        // none: what the job promises
};

enum class Start { kNew, kContinued, kDone };

struct Submission {
  ledger::Batch batch;
  Start start = Start::kNew;
};

// Thread-compatible.
class BatchOpener {
 public:
  // Nothing is owned; all of it outlives the opener. `trace_sample`: the share, 0 to 1, of batches
  // without a submitter's trace that are sampled.
  BatchOpener(const job::JobDefinition* job, const BatchSource* source, ledger::BatchLedger* ledger,
              sync::UniqueIdGenerator* numbers, base::Clock* clock,
              double trace_sample = kDefaultTraceSample)
      : job_(job),
        source_(source),
        ledger_(ledger),
        numbers_(numbers),
        clock_(clock),
        trace_sample_(trace_sample) {}

  // Finds the batch that `request` continues or repeats, or begins a new one. FailedPrecondition:
  // the batch is of another job and not cancelled, the input differs from the one that it was made
  // of, or it is bound to another job revision or handler version; the message says which and what
  // to do. Reads the whole input at the most once; Cancelled when `stop` is requested meanwhile.
  absl::StatusOr<Submission> Open(const SubmitRequest& request, const std::stop_token& stop = {});

 private:
  // `replaced`: the batch in whose place the new one counts; null: none.
  absl::StatusOr<Submission> Begin(const SubmitRequest& request, const ledger::Batch* replaced,
                                   const std::stop_token& stop);
  absl::StatusOr<Submission> Continue(const SubmitRequest& request, ledger::Batch batch,
                                      const std::stop_token& stop);
  // With always_new, where `prior` is not complete.
  absl::StatusOr<Submission> ContinueOrBegin(const SubmitRequest& request, ledger::Batch prior,
                                             const std::stop_token& stop);
  // The job revision and handler version are those that the batch is bound to.
  bool HasCodeOf(const ledger::Batch& batch, const SubmitRequest& request) const;
  absl::Status VerifySource(const ledger::Batch& batch, const std::stop_token& stop);
  // Compares every item in the ledger with the input.
  absl::Status VerifyItems(const ledger::Batch& batch, const std::stop_token& stop);

  const job::JobDefinition* const job_;     // not owned
  const BatchSource* const source_;         // not owned
  ledger::BatchLedger* const ledger_;       // not owned
  sync::UniqueIdGenerator* const numbers_;  // not owned
  base::Clock* const clock_;                // not owned
  const double trace_sample_;
};

}  // namespace muster::initiator::batch
