// SPDX-License-Identifier: Apache-2.0

// ResultCounter: collects received results (the hand), and counts them in one transaction.
//
//   Receive ─► TakeAll (decode, hold against the ledgers) ─► Commit ─► Delete
//
// A message may carry many results of one batch. A result that cannot be counted does not prevent
// counting the others of its message; the message goes to the poison queue once those are counted.
//
// A message is deleted only after the commit that counted it is durable. A crash in between is a
// harmless duplicate: only the item's row in the report decides whether it counts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/retry.h"
#include "muster/item/result_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_store.h"
#include "services/controller/away_ledgers.h"
#include "services/controller/batch_completer.h"
#include "services/controller/controller.h"
#include "services/controller/count_metrics.h"
#include "services/controller/count_spans.h"
#include "services/controller/ledger_cache.h"
#include "services/controller/redelivery.h"

namespace muster::controller {

// The most bytes of output records that a hand takes in before it is counted, beside those of the
// last messages received: what a transaction writes at a time, and what a controller holds in
// memory.
inline constexpr size_t kMaxHeldOutputBytes = size_t{32} << 20;

// Serves one partition. Not thread-safe.
class ResultCounter {
 public:
  // `events` is not owned; it and the targets of `dependencies` outlive the counter. `stop` ends
  // the waits between retries.
  ResultCounter(queue::QueueId partition, const Options& options, const Events* events,
                Dependencies dependencies, std::stop_token stop);

  // Receives until the partition has no more messages, or the hand is full.
  absl::Status Receive();

  // Counts and settles the results in the hand. On error their messages arrive again: at once if
  // the report may take them by then, and else when the leases lapse.
  absl::Status Count();

  // Asks the ledger of a registered batch for what its results are held against, before they come.
  // What keeps it from answering does not matter yet.
  void Prepare(uint64_t batch) { ledger_cache_.Prepare({batch}); }

  // As BatchCompleter.
  absl::StatusOr<std::map<uint64_t, absl::Status>> CompleteDone(const std::set<uint64_t>& batches) {
    return completer_.CompleteDone(batches);
  }

  size_t in_hand() const { return items_.size() + hopeless_.size(); }  // results
  bool full() const {
    return in_hand() >= static_cast<size_t>(options_.max_commit_results) ||
           output_bytes_ >= kMaxHeldOutputBytes;
  }
  // When to look again for results that were put back because the ledger of their batch is away,
  // or left because this controller cannot read them; infinite: there are none.
  absl::Duration ComesAgainIn() { return redelivery_.ComesAgainIn(); }
  // Whether the results in the hand complete a batch, so that waiting for more results gains
  // nothing.
  absl::StatusOr<bool> HoldsTheLast();

 private:
  absl::Status TakeAll(std::vector<queue::Message> messages);
  absl::Status Take(queue::Message message, absl::StatusOr<item::DecodedResults> decoded);
  void Keep(item::DecodedResults results, queue::Message message);
  // As LedgerCache::Check, but does not ask a ledger that was away a moment ago.
  absl::Status Check(const report::CountedItem& item);
  // As AwayLedgers, and logs it.
  absl::Status NoteAway(uint64_t batch, const absl::Status& why);
  absl::Status Commit();
  // Forgets what is known of the batches in the hand that the report has no more: they were deleted
  // since they were looked up. False: it has them all.
  bool ForgetGone();
  // The messages of the hand, which could not be committed for the reason `why`, come again at
  // once.
  void GiveBack(const absl::Status& why);
  void EmptyHand();
  absl::Status Settle();
  // What became of the batch's records; nullopt: not all of them were counted by this commit, or
  // are in the hand.
  std::optional<ledger::BatchOutcome> OutcomeInHand(const ledger::Batch& batch,
                                                    const report::CommitSummary& summary) const;
  void LogVerdicts(const report::CommitSummary& summary) const;

  // Calls a store until it succeeds or fails for good.
  template <typename Fn>
  auto Retrying(Fn fn) {
    return retry_.Run(stop_, [&fn](const base::RetryAttempt&) { return fn(); });
  }

  const queue::QueueId partition_;
  const Options options_;
  const Dependencies deps_;
  const std::stop_token stop_;
  base::RetryPolicy retry_;
  LedgerCache ledger_cache_;
  BatchCompleter completer_;
  const CountMetrics metrics_;
  CountSpans spans_;

  // The hand.
  std::vector<report::CountedItem> items_;
  size_t output_bytes_ = 0;               // of their records
  std::vector<ItemOrigin> origins_;       // parallel to items_
  std::vector<queue::Receipt> receipts_;  // of messages that have all of their results in items_
  std::vector<std::vector<std::string>>
      blobs_;  // parallel to receipts_: blobs of claim-checked results
  std::map<uint64_t, uint64_t> items_of_batch_;
  std::vector<queue::DeadLetterRequest> hopeless_;

  AwayLedgers away_;
  Redelivery redelivery_;  // of what waits for away_
};

}  // namespace muster::controller
