// LedgerCache: what the controller remembers of the batches whose results arrive, so that a result
// is held against its batch's ledger before it may count.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/fingerprint.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/report/report_store.h"

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

}  // namespace muster::controller
