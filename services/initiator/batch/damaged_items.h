// SPDX-License-Identifier: Apache-2.0

// DamagedItems: for each batch whose content was found damaged, the item at which it was found. The
// readers of content note it, and the batch's engine stops the batch until that item can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "muster/base/lru_map.h"
#include "muster/base/mutex.h"
#include "muster/content/item_content.h"

namespace muster::initiator::batch {

// Batches that are noted. Beyond that the one that was noted least recently is forgotten: its items
// wait all the same, and the next one that is read notes it again.
inline constexpr size_t kMaxDamaged = 1000;

// Thread-safe.
class DamagedItems {
 public:
  void Note(const content::ItemReference& item) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    *by_batch_.FindOrAdd(item.batch).first = item;
  }

  // nullopt: nothing is known to be damaged.
  std::optional<content::ItemReference> Find(uint64_t batch) const ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const content::ItemReference* const found = by_batch_.Peek(batch);
    if (found == nullptr) return std::nullopt;
    return *found;
  }

  // The content is whole again, or the batch is over.
  void Clear(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    by_batch_.Erase(batch);
  }

 private:
  mutable base::Mutex mu_;
  base::LruMap<uint64_t, content::ItemReference> by_batch_ ABSL_GUARDED_BY(mu_){kMaxDamaged};
};

}  // namespace muster::initiator::batch
