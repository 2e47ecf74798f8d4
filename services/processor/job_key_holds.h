// SPDX-License-Identifier: Apache-2.0

// JobKeyHolds: the held keys of a job with `on_poison: hold`, for its listener.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/held_keys.h"
#include "muster/listener/key_holds.h"
#include "muster/queue/queue_store.h"

namespace muster::processor {

// Thread-safe.
class JobKeyHolds final : public listener::KeyHolds {
 public:
  struct Dependencies {
    sync::OptimisticSyncStore* sync = nullptr;    // not owned
    queue::QueueStore* queues = nullptr;          // not owned
    item::CancelledBatches* cancelled = nullptr;  // not owned; may be null
    base::Clock* clock = nullptr;                 // not owned
  };
  JobKeyHolds(std::vector<queue::QueueId> partitions, const Dependencies& deps)
      : partitions_(std::move(partitions)), deps_(deps), keys_(deps.sync) {}

  std::string ItemOf(const queue::Message& message) const override;
  // Keys that are held for items of cancelled batches are released first: no redrive takes these.
  absl::StatusOr<std::vector<Held>> Read(int partition, bool with_dead) override;
  absl::Status Hold(int partition, const std::string& key, const queue::Message& message) override;
  absl::Status Release(int partition, const std::string& key, const std::string& item) override;

 private:
  const std::vector<queue::QueueId> partitions_;
  const Dependencies deps_;
  item::HeldKeyStore keys_;
};

}  // namespace muster::processor
