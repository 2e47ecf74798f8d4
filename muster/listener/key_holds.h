// SPDX-License-Identifier: Apache-2.0

// KeyHolds: the keys of an ordered listener's partitions that are held. Of a held key one message
// alone may begin: that of the item for which the key is held.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// What an ordered listener gives back because its key is held stays away so long at most, and comes
// again when the key goes on. The bound is for what should not happen: a lost restart.
inline constexpr absl::Duration kHeldAway = absl::Hours(1);

// Durable, and the same for all owners of a partition. Thread-safe. May block on a store.
class KeyHolds {
 public:
  struct Held {
    std::string key;
    std::string item;      // that may begin
    bool is_dead = false;  // it is among the dead letters; only if that was asked for
  };

  virtual ~KeyHolds() = default;

  // The item of a message: equal for all messages of one item. Called under the listener's lock.
  virtual std::string ItemOf(const queue::Message& message) const = 0;

  // What is held of the partition.
  virtual absl::StatusOr<std::vector<Held>> Read(int partition, bool with_dead) = 0;
  // Holds the key, for the item of `message`, which is about to become a dead letter. After an
  // error it must not become one.
  virtual absl::Status Hold(int partition, const std::string& key,
                            const queue::Message& message) = 0;
  // The item is settled: the key is not held any more. Fine if it is not held for this item.
  virtual absl::Status Release(int partition, const std::string& key, const std::string& item) = 0;
};

}  // namespace muster::listener
