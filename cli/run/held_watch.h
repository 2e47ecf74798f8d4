// SPDX-License-Identifier: Apache-2.0

// HeldWatch: notices that all that is left of a run waits behind held keys. Nothing in the run can
// let them go, so it ends then.
#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/item/held_key_admin.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::cli {

// Thread-safe. Looks once a second, on a thread of its own, until it is destroyed or has found it.
class HeldWatch {
 public:
  struct Sources {
    std::vector<queue::QueueId> inputs;  // of the job
    queue::QueueId output;
    queue::QueueStore* queues = nullptr;           // not owned
    sync::OptimisticSyncStore* records = nullptr;  // not owned
    base::Clock* clock = nullptr;                  // not owned
    // Whether all items of the batch were put into their queues.
    std::function<absl::StatusOr<bool>()> is_put;
    // Called once, on the watch's thread, when only held items are left.
    std::function<void()> on_held;
  };
  explicit HeldWatch(Sources sources);

  // What is held, if that has ended the run.
  std::optional<item::HeldSummary> found() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Watch(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);
  // nullopt: something else goes on, or nothing is held.
  absl::StatusOr<std::optional<item::HeldSummary>> Look() const;

  const Sources sources_;
  mutable base::Mutex mu_;
  std::optional<item::HeldSummary> found_ ABSL_GUARDED_BY(mu_);
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace muster::cli
