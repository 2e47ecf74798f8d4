// SPDX-License-Identifier: Apache-2.0
#include "muster/content/boundary_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::content {

absl::StatusOr<ledger::ItemBoundary> BoundaryCache::Find(const ItemReference& item) {
  const Key key(item.batch, item.index / kBoundaryPage);
  const uint64_t place = item.index % kBoundaryPage;
  const auto has_it = [&](const Page& page) {
    return page != nullptr && place < page->size() && (*page)[place].content == item.hash;
  };
  Page page = Cached(key);
  // The page may be from before the item was recorded, or of a ledger that has gone since.
  if (!has_it(page)) {
    MUSTER_ASSIGN_OR_RETURN(page, Load(key));
  }
  if (place >= page->size()) return Missing(item);
  if (!has_it(page)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "item ", item.batch, "/", item.index, " was made of another slice than its ledger has"));
  }
  return (*page)[place];
}

absl::Status BoundaryCache::Missing(const ItemReference& item) {
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch batch, ledger_->Get(item.batch));
  const std::string why =
      absl::StrCat("the ledger has no item ", item.index, " of batch ", item.batch);
  if (batch.state == ledger::BatchState::kOpen) return absl::NotFoundError(why);
  return item.index < batch.items ? absl::NotFoundError(why) : absl::InvalidArgumentError(why);
}

BoundaryCache::Page BoundaryCache::Cached(const Key& key) {
  base::MutexLock lock(&mu_);
  const auto found = pages_.find(key);
  return found == pages_.end() ? nullptr : found->second;
}

absl::StatusOr<BoundaryCache::Page> BoundaryCache::Load(const Key& key) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<ledger::ItemBoundary> items,
                          ledger_->Items(key.first, key.second * kBoundaryPage, kBoundaryPage));
  Page page = std::make_shared<const std::vector<ledger::ItemBoundary>>(std::move(items));
  base::MutexLock lock(&mu_);
  if (pages_.size() >= kMaxBoundaryPages) pages_.clear();
  pages_[key] = page;
  return page;
}

}  // namespace muster::content
