// SPDX-License-Identifier: Apache-2.0

// KeyDispatcher: which of the messages that an ordered listener holds may run: of each key the
// oldest, once the one before it is settled.
//
//   Add ─► waiting ─► head of its key ─► Take ─► running ─┬─ Settled: the next one is the head
//                          ▲                              │
//                          └──────── Keep, until ◄────────┘
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "muster/listener/lease_table.h"

namespace muster::listener {

// A message in hand.
struct HeldMessage {
  LeasePtr lease;
  std::string key;
  uint64_t position = 0;  // in its partition
};

// Holds what its owner adds, without a bound of its own: held and held_bytes tell. Not thread-safe.
// Times are monotonic.
class KeyDispatcher {
 public:
  // Adds a message behind all others of its key. False: its partition holds the position already.
  bool Add(HeldMessage message);

  // Up to `max` messages of one partition that may run at `now`, each of another key, those first
  // that have waited longest. They run until Settled, Keep or Forget.
  std::vector<HeldMessage> Take(absl::Duration now, size_t max);
  // How many may run now, over all partitions.
  size_t CountReady(absl::Duration now);
  // When the next one may run that waits for its time; infinite: none does.
  absl::Duration NextAt() const;

  // The running message of the key is settled.
  void Settled(int partition, const std::string& key);
  // The running message of the key runs again, as `again`, from `at` on, and before all others of
  // the key.
  void Keep(HeldMessage again, absl::Duration at);

  // Takes away what waits of one key.
  std::vector<HeldMessage> TakeBehind(int partition, const std::string& key);
  // Takes away all messages of the partition; those that run are not among the result, and are
  // forgotten.
  std::vector<HeldMessage> Forget(int partition);
  // The same, but those that run stay, and nothing follows them.
  std::vector<HeldMessage> TakeWaiting(int partition);

  size_t held(int partition) const;  // waiting and running
  size_t running(int partition) const;
  size_t held_bytes(int partition) const;  // of bodies

 private:
  struct Key {
    std::deque<HeldMessage> waiting;
    std::optional<HeldMessage> running;
    absl::Duration not_before = -absl::InfiniteDuration();
  };
  struct Partition {
    absl::flat_hash_map<std::string, Key> keys;
    absl::flat_hash_set<uint64_t> positions;  // held
    std::deque<std::string> ready;            // keys; may name one that is not ready any more
    size_t running = 0;
    size_t bytes = 0;
  };
  using Later = std::multimap<absl::Duration, std::pair<int, std::string>>;

  static bool IsReady(const Key& key, absl::Duration now);
  void Promote(absl::Duration now);
  void Drop(Partition* partition, const HeldMessage& message);
  void NoteHead(int partition, const std::string& name, const Key& key);
  std::vector<HeldMessage> TakeFrom(Partition* partition, absl::Duration now, size_t max);

  std::map<int, Partition> partitions_;
  Later later_;   // keys that wait for their time; may name one that does not any more
  int next_ = 0;  // the partition that is looked at first
};

}  // namespace muster::listener
