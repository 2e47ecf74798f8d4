// SPDX-License-Identifier: Apache-2.0

// BoundaryCache: the boundaries of items that were asked for lately, read from a ledger page by
// page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/content/item_content.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::content {

// Items of a page: a worker takes items of a batch in runs.
inline constexpr uint64_t kBoundaryPage = 256;
// Pages that are kept, together less than a megabyte. A full cache forgets all of them.
inline constexpr size_t kMaxBoundaryPages = 64;

// Thread-safe. Two threads may read the same page at once.
class BoundaryCache {
 public:
  // `ledger` is not owned.
  explicit BoundaryCache(ledger::BatchRecords* ledger) : ledger_(ledger) {}

  // The boundary of the item. NotFound: the ledger has no such batch, or no item of this index
  // yet. InvalidArgument: it has other content under the item's number, or will never have the
  // item. Otherwise the ledger's errors.
  absl::StatusOr<ledger::ItemBoundary> Find(const ItemReference& item) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Page = std::shared_ptr<const std::vector<ledger::ItemBoundary>>;
  using Key = std::pair<uint64_t, uint64_t>;  // batch, number of the page

  // Of an item that is not in the ledger.
  absl::Status Missing(const ItemReference& item);
  Page Cached(const Key& key) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Page> Load(const Key& key) ABSL_LOCKS_EXCLUDED(mu_);

  ledger::BatchRecords* const ledger_;  // not owned
  base::Mutex mu_;
  std::map<Key, Page> pages_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::content
