// LedgerCache: what the controller remembers of the batches whose results arrive, so that a result
// is held against its batch's ledger before it may count.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/fingerprint.h"
#include "muster/base/retry.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_store.h"
#include "services/controller/controller.h"
#include "services/controller/result_decoder.h"

namespace muster::controller {

// Not thread-safe.
class LedgerCache {
 public:
  // Neither is owned; both outlive the book.
  LedgerCache(ledger::BatchRecords* ledger, report::ReportStore* report);

  // OK: the item is one of its batch. InvalidArgument saying why: it is not, and never will be (no
  // such batch, no such item, another content). Anything else is a store's error.
  absl::Status Check(const report::CountedItem& item);

  // The batch stands here now.
  void Note(const report::Progress& progress);

  // Whether `more` items would make a sealed batch complete.
  absl::StatusOr<bool> WouldComplete(uint64_t batch, uint64_t more);

 private:
  struct Item {
    base::Fingerprint128 content;
    int64_t transactions = 0;
  };
  struct Page {
    int64_t counted = 0;      // items that have their row
    std::vector<Item> items;  // as far as the ledger was read
  };

  // NotFound: the ledger or the report does not know the batch.
  absl::StatusOr<Page*> Open(uint64_t batch);
  // Reads on in the ledger until the page holds item `index`, if there is one.
  absl::Status ReadTo(uint64_t batch, uint64_t index, Page* page);

  ledger::BatchRecords* const ledger_;  // not owned
  report::ReportStore* const report_;   // not owned
  std::map<uint64_t, Page> pages_;
};

// ResultCounter: takes results into the hand, and counts a handful in one transaction.
//
//   Receive ─► Take (decode, hold against the ledger) ─► Commit ─► Delete
//
// A message may carry many results of one batch. What cannot be counted does not keep the others of
// its message from it; the message is then set aside, once those are counted.
//
// A message is deleted only after the commit that counted it is durable. A crash in between is a
// harmless duplicate: only the item's row in the report decides whether it counts.

// One partition's share of what is counted next. Not thread-safe.
class ResultCounter {
 public:
  // `events` is not owned; it and what `dependencies` point to outlive the counter. `stop` ends
  // waiting between retries.
  ResultCounter(queue::QueueId partition, const Options& options, const Events* events,
                Dependencies dependencies, std::stop_token stop);

  // Receives until the partition gives no more, or the hand is full. Answers how many.
  absl::StatusOr<int> Receive();

  // Counts and settles what is in the hand. On error the messages stay leased, and come again.
  absl::Status Count();

  // Completes `batch` if every item of it is counted.
  absl::Status CompleteIfDone(uint64_t batch);

  size_t in_hand() const { return items_.size() + hopeless_.size(); }  // results
  bool full() const { return in_hand() >= static_cast<size_t>(options_.max_commit_results); }
  // How soon to look for results that were not kept, because the ledger of their batch is away, or
  // because only a newer controller can read them; infinite: there are none.
  absl::Duration ComesAgainIn();
  // Whether nothing is worth waiting for: what is in the hand completes a batch.
  absl::StatusOr<bool> HoldsTheLast();

 private:
  absl::Status Take(queue::Message message);
  void Keep(DecodedResults results, queue::Message message);
  void ComeAgain(uint64_t batch, queue::Receipt receipt);
  void PutBack();
  void LeaveToNewer(const absl::Status& why);
  // LedgerCache::Check, but a ledger that was away a moment ago is not asked.
  absl::Status Check(const report::CountedItem& item);
  absl::Status Commit();
  absl::Status Settle();
  void DropBlob(const std::string& name);
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch);
  absl::Status Finish(const report::Progress& progress);
  // OK also when somebody who is needed is away: whoever has the batch asks again.
  absl::Status FinishIfPossible(const report::Progress& progress);
  void LogVerdicts(const report::CommitSummary& summary) const;

  // Calls a store until it works, or for good does not.
  template <typename Fn>
  auto Retrying(Fn fn) {
    return retry_.Run(stop_, [&fn](const base::RetryAttempt&) { return fn(); });
  }

  const queue::QueueId partition_;
  const Options options_;
  const Events* const events_;
  const Dependencies deps_;
  const std::stop_token stop_;
  base::RetryPolicy retry_;
  LedgerCache ledger_cache_;

  // The hand.
  std::vector<report::CountedItem> items_;
  std::vector<queue::Receipt> receipts_;         // of messages all of whose results are in items_
  std::vector<std::vector<std::string>> blobs_;  // as receipts_: where results were claim-checked
  std::map<uint64_t, uint64_t> items_of_batch_;
  std::vector<queue::DeadLetterRequest> hopeless_;

  // A batch whose ledger was away: when to ask it again, and how long that is from when it was
  // asked.
  struct Away {
    absl::Duration until;
    absl::Duration pause;
  };
  std::map<uint64_t, Away> away_;
  std::vector<queue::UpdateRequest> put_back_;  // by this Receive
  absl::Duration left_until_;   // by then results for a newer controller have come again, if any do
  absl::Duration tells_again_;  // of results that only a newer controller can read
};

}  // namespace muster::controller
