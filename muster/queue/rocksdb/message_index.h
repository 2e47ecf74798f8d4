// SPDX-License-Identifier: Apache-2.0

// MessageIndex: the messages of a queue and the order in which they become visible, in memory. It
// makes a receive cost the same at any depth: the index yields the next messages, their bodies are
// read by key, and no scan ever meets the tombstones of deleted messages.
//
//   Insert ──▶ ready ◀──(time passes)── hidden: held or delayed
//                │                        ▲
//                └── CheckOut ──▶ out ──CheckIn
//                                  └──▶ Erase
//
// A message that is out belongs to the one call that is writing its change to disk. No other call
// may touch it, it neither expires nor becomes visible, and it still counts in its previous place.
//
// The index follows time in steps of at most kMaxStep messages, because its owner holds a lock
// during a step. IsBehind says that more steps are due. An index that is behind still never yields
// an expired message.
//
// Per message: 40 bytes of state under an 8-byte key, 16 bytes in the order of visibility, 16 in
// the order of expiry if it expires.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "muster/queue/rocksdb/codec.h"

namespace muster::queue::rocksdb {

// Not thread-safe. Times are µs of the engine's clock and never go back.
class MessageIndex {
 public:
  struct Counts {
    int64_t ready = 0;
    int64_t held = 0;
    int64_t delayed = 0;
  };

  // Keeps a step near a tenth of a millisecond.
  static constexpr int kMaxStep = 1024;

  // `seq` is new.
  void Insert(uint64_t seq, const MessageState& state, int64_t now_us);

  // nullptr when there is none. Valid until the next change.
  const MessageState* Find(uint64_t seq) const;
  bool IsOut(uint64_t seq) const;

  // `seq` is there and not out.
  MessageState CheckOut(uint64_t seq);
  // Ends a check-out. `state` is the new state, or the one that CheckOut returned.
  void CheckIn(uint64_t seq, const MessageState& state, int64_t now_us);
  // Ends a check-out and removes the message.
  void Erase(uint64_t seq);
  void Clear();

  // Returns the first `max` (≤ kMaxStep) ready messages, by (visible time, sequence). May return
  // fewer while the index is behind.
  std::vector<uint64_t> Ready(int64_t now_us, int max);

  // Returns the first `max` messages from `seq` on, wherever they are, also those that are out.
  std::vector<uint64_t> From(uint64_t seq, int64_t now_us, int max) const;

  // One step: removes expired messages and appends them to `expired`.
  void Expire(int64_t now_us, std::vector<uint64_t>* expired);
  // One step: makes messages ready that have become visible.
  void Promote(int64_t now_us);
  bool IsBehind(int64_t now_us) const;
  // When the next message becomes ready, in the past if one is; kNeverUs if none does by itself.
  int64_t NextVisible() const;

  // The counts after the last step, if the index is behind.
  Counts CountsAt(int64_t now_us);
  // Insertion time of the oldest message; `now_us` when there is none.
  int64_t OldestInsertion(int64_t now_us) const;
  // The messages that do not become visible with their insertion: they were leased or given back,
  // or put with a delay. Looks at all messages; none is out.
  std::vector<uint64_t> Moved() const;
  // The lowest sequence, also of a message that is out; nullopt when there is no message.
  std::optional<uint64_t> FirstSequence() const;

 private:
  using Messages = absl::btree_map<uint64_t, MessageState>;
  using Order = absl::btree_set<std::pair<int64_t, uint64_t>>;  // (time, sequence)

  enum Place : uint8_t { kReady, kHeldPlace, kDelayedPlace, kPlaces };
  static constexpr uint8_t kOutBit = 0x80;

  // Adds a message that is in no order to its orders and counts it.
  void Link(uint64_t seq, MessageState* state, int64_t now_us);
  // Takes a message out of its orders; it stays counted.
  void Unlink(uint64_t seq, const MessageState& state);
  void Uncount(const MessageState& state);
  // The message `seq`, which is there and out.
  Messages::iterator FindOut(uint64_t seq);

  Messages messages_;
  Order ready_;   // by visible time
  Order hidden_;  // by visible time
  Order expiring_;
  int64_t counts_[kPlaces] = {};
};

}  // namespace muster::queue::rocksdb
