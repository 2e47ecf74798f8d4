// SPDX-License-Identifier: Apache-2.0

// HeldKeyStore: which keys of a job with `on_poison: hold` are held, by partition of its input
// queue. Held means: one item of the key was given up, and of the key that item alone may begin,
// until it has succeeded after a redrive, or the key is released.
//
// The owner of a partition adds a key before its item becomes a dead letter, so that a later owner
// knows it whenever the first one dies. A record holds at most kMaxHeldKeys. It stays when the last
// of them is released, for a killed nats-server of 2.15 may bring back what stood in a record that
// was removed; it goes with its queue (Forget).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::v1 {
class HeldKeyRecord;
}  // namespace muster::v1

namespace muster::item {

// The record of a partition is read and written whole. Keys of more than 60 bytes or so make it
// full earlier (sync::kMaxDataBytes).
inline constexpr int kMaxHeldKeys = 512;

struct HeldKey {
  std::string key;     // as OrderKeyIn
  uint64_t batch = 0;  // of the item that was given up
  uint64_t item = 0;
  absl::Time since;
  // The message that was given up, as it was received; nullopt: an older muster did not note it.
  std::optional<queue::PoisonName> message = {};
};

// Thread-safe; any number of processes share the records. Statuses are those of the store;
// DataLoss: the record is damaged. Unavailable: others change the record all the time.
class HeldKeyStore {
 public:
  // `store` is not owned.
  explicit HeldKeyStore(sync::OptimisticSyncStore* store) : store_(store) {}

  // In the order in which they were held.
  absl::StatusOr<std::vector<HeldKey>> Read(const queue::QueueId& partition);
  // Holds the key. If it is held already for another item it becomes held for this one, since then.
  // ResourceExhausted: the record is full.
  absl::Status Hold(const queue::QueueId& partition, const HeldKey& held);
  // Removes those that are still held for the same item. Returns them.
  absl::StatusOr<std::vector<HeldKey>> Release(const queue::QueueId& partition,
                                               absl::Span<const HeldKey> keys);
  // Removes the record of a queue that is deleted, with whatever keys it holds.
  absl::Status Forget(const queue::QueueId& partition);

 private:
  // Returns whether `change` has changed the record, which is then written.
  using Change = std::function<absl::StatusOr<bool>(v1::HeldKeyRecord*)>;
  absl::Status Update(const queue::QueueId& partition, const Change& change);

  sync::OptimisticSyncStore* const store_;  // not owned
};

}  // namespace muster::item
