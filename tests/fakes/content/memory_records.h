// SPDX-License-Identifier: Apache-2.0

// MemoryRecords: the boundaries of batches in memory, and how often they were asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/content/item_content.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::content {

// One thread at a time.
class MemoryRecords final : public ledger::BatchRecords {
 public:
  // Splits `source`, from the offset `from` on, into items of `bytes` each, and adds them to
  // `batch`. Answers their references.
  std::vector<ItemReference> Split(uint64_t batch, const std::string& source, size_t bytes,
                                   const std::string& owner = "", size_t from = 0) {
    std::vector<ItemReference> references;
    std::vector<ledger::ItemBoundary>& items = items_[batch];
    for (size_t offset = from; offset < source.size(); offset += bytes) {
      const std::string slice = source.substr(offset, bytes);
      ledger::ItemBoundary item;
      item.offset = offset;
      item.length = slice.size();
      item.content = base::Fingerprint(slice);
      references.push_back(
          {batch, static_cast<uint32_t>(items.size()), owner, slice.size(), item.content});
      items.push_back(item);
    }
    return references;
  }

  void Drop(uint64_t batch) { items_.erase(batch); }
  void Seal(uint64_t batch) { sealed_.insert(batch); }
  int asked() const { return asked_; }

  absl::StatusOr<ledger::Batch> Get(uint64_t batch) override {
    if (!items_.contains(batch)) return absl::NotFoundError("no such batch");
    ledger::Batch found;
    found.number = batch;
    found.items = items_[batch].size();
    if (sealed_.contains(batch)) found.state = ledger::BatchState::kSealed;
    return found;
  }

  absl::StatusOr<std::vector<ledger::ItemBoundary>> Items(uint64_t batch, uint64_t first_index,
                                                          size_t max_items) override {
    ++asked_;
    const auto found = items_.find(batch);
    if (found == items_.end()) return absl::NotFoundError("no such batch");
    const std::vector<ledger::ItemBoundary>& items = found->second;
    const size_t first = std::min<size_t>(first_index, items.size());
    const size_t count = std::min(max_items, items.size() - first);
    return std::vector<ledger::ItemBoundary>(items.begin() + static_cast<ptrdiff_t>(first),
                                             items.begin() + static_cast<ptrdiff_t>(first + count));
  }

  absl::Status MarkComplete(uint64_t, absl::Time) override { return absl::OkStatus(); }

 private:
  std::map<uint64_t, std::vector<ledger::ItemBoundary>> items_;
  std::set<uint64_t> sealed_;
  int asked_ = 0;
};

}  // namespace muster::content
