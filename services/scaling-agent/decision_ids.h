// DecisionIds: the numbers in the ids of one target's decisions, "billing-17". They count up, also
// when another agent goes on deciding.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/sync/unique_id_generator.h"

namespace muster::scaling_agent {

// Thread-safe. Decisions never wait for the store: one thread fills, another takes.
class DecisionIds {
 public:
  // `store` is not owned.
  DecisionIds(absl::string_view target, sync::OptimisticSyncStore* store);

  // Before the first, and when others have decided meanwhile: what is left is older than their
  // numbers.
  void BeginAnew();
  // Sees to it that some are at hand; blocks as long as the store does. One at a time.
  absl::Status Fill();
  // nullopt: there is none, until the store answers.
  std::optional<std::string> Take();

 private:
  const std::string target_;
  sync::OptimisticSyncStore* const store_;  // not owned

  base::Mutex mu_;
  // nullptr: nothing has begun yet. Shared with who fills while all begins anew.
  std::shared_ptr<sync::UniqueIdGenerator> generator_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> at_hand_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
