// SPDX-License-Identifier: Apache-2.0

// LedgerCache: what the controller remembers of the ledgers of batches, to check each result
// against its batch's ledger before counting it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/fingerprint.h"
#include "muster/base/lru_map.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"

namespace muster::controller {

// How much a LedgerCache remembers. Beyond that the batches that were used least recently are
// dropped; what it needs of them is read again.
struct LedgerCacheLimits {
  size_t batches = 1000;
  size_t items = size_t{4} << 20;  // of all batches, at 24 bytes each; one may have more alone
};

// Not thread-safe.
class LedgerCache {
 public:
  // Neither is owned; both outlive the cache.
  LedgerCache(ledger::BatchRecords* ledger, report::ReportStore* report,
              LedgerCacheLimits limits = {})
      : ledger_(ledger), report_(report), limits_(limits), pages_(limits.batches) {}

  // OK: the item belongs to its batch. InvalidArgument: it does not and never will, and the message
  // says why (no such batch, no such item, other content). A transient error: the ledger of the
  // batch is away, or something is wrong with this batch alone. Any other error is the report's.
  absl::Status Check(const report::CountedItem& item);

  // Reads ahead what Check needs of the batches that are not known, of several at a time. Answers
  // why, of those that could not be read.
  std::map<uint64_t, absl::Status> Prepare(const std::set<uint64_t>& batches);

  // Records the latest progress of a batch.
  void Note(const report::Progress& progress);

  // The batch as it was when it was seen to be sealed, without its definition: what is fixed by
  // then. nullopt: it was not, or was completed since.
  std::optional<ledger::BatchView> Sealed(uint64_t batch) const;
  void ForgetSealed(uint64_t batch);
  // The batch is over: what comes of it from now on is rare.
  void Forget(uint64_t batch);

  // Whether `more` items would make a sealed batch complete. Asks the ledger only where it may say
  // yes now, and ever more seldom while the number of items stays the same.
  absl::StatusOr<bool> WouldComplete(uint64_t batch, uint64_t more);
  // Whether the batch has more items than `counted`, for certain, without a question.
  bool LacksItems(uint64_t batch, uint64_t counted) const;

 private:
  struct Item {
    base::Fingerprint128 content;
    int64_t transactions = 0;
  };
  struct Page {
    int64_t counted = 0;                      // items that have their row
    std::string owner;                        // as the report has it; empty: of an older muster
    std::vector<Item> items;                  // as far as the ledger has been read
    std::optional<ledger::BatchView> sealed;  // as Sealed
    uint64_t least_items = 0;  // the batch has so many at least: items are only ever added to it
    // WouldComplete's looks in a row that found so many items, of a batch that may have no more.
    uint64_t looked_at = 0;
    uint64_t looks = 0;
  };

  // What the report and the ledger say of a batch, read in this order.
  struct Answers {
    absl::StatusOr<report::Progress> progress;
    absl::StatusOr<ledger::BatchView> view;
  };

  // NotFound: the ledger or the report does not know the batch.
  absl::StatusOr<Page*> Open(uint64_t batch);
  Answers Ask(uint64_t batch) const;  // thread-safe
  absl::StatusOr<Page*> Add(uint64_t batch, Answers answers);
  static void AddTo(Page* page, absl::Span<const ledger::ItemBoundary> items);
  static void NoteSealed(ledger::BatchView view, Page* page);
  absl::StatusOr<report::Progress> Register(const ledger::Batch& batch);
  // Reads the ledger further until the page holds item `index`, if the batch has it.
  absl::Status ReadTo(uint64_t batch, uint64_t index, Page* page);
  // Drops pages until there is room; never the one that was used last.
  void MakeRoom();

  ledger::BatchRecords* const ledger_;  // not owned
  report::ReportStore* const report_;   // not owned
  const LedgerCacheLimits limits_;
  base::LruMap<uint64_t, Page> pages_;
};

// Keeps a fault of one batch from stopping the others: after Unavailable the batch's results come
// again after a pause, as if its ledger were away, until the fault is mended. A transient error
// stays as it is.
absl::Status SetApart(uint64_t batch, const absl::Status& why);

// Unavailable: the ledger that answered is not that of the batch that is counted. Two initiators
// may have drawn one number; until the one without it knows, its ledger may answer.
absl::Status CheckOwner(const ledger::Batch& batch, const report::Progress& counted);

}  // namespace muster::controller
