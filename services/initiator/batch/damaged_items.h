// DamagedItems: for each batch whose content was found damaged, the item at which it was found. The
// readers of content note it, and the batch's engine stops the batch until that item can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "muster/base/mutex.h"
#include "muster/content/item_content.h"

namespace muster::initiator::batch {

// Batches that are noted. Beyond that the lowest one is forgotten: its items wait all the same, and
// the next one that is read notes it again.
inline constexpr size_t kMaxDamaged = 1000;

// Thread-safe.
class DamagedItems {
 public:
  void Note(const content::ItemReference& item) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    if (by_batch_.size() >= kMaxDamaged) by_batch_.erase(by_batch_.begin());
    by_batch_[item.batch] = item;
  }

  // nullopt: nothing is known to be damaged.
  std::optional<content::ItemReference> Find(uint64_t batch) const ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const auto found = by_batch_.find(batch);
    if (found == by_batch_.end()) return std::nullopt;
    return found->second;
  }

  // The content is whole again, or the batch is over.
  void Clear(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    by_batch_.erase(batch);
  }

 private:
  mutable base::Mutex mu_;
  std::map<uint64_t, content::ItemReference> by_batch_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::batch
