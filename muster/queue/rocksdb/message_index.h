// MessageIndex: what a queue holds and in which order it becomes visible, in memory. It is why a
// receive costs the same at any depth: the next messages are found here, their bodies by key, and
// no scan ever meets the tombstones of what was deleted before.
//
//   Insert ──▶ ready ◀──(time passes)── hidden: held or delayed
//                │                        ▲
//                └── CheckOut ──▶ out ──CheckIn
//                                  └──▶ Erase
//
// A message that is out belongs to one call, which is writing its change to disk: nothing else may
// touch it, it neither expires nor becomes visible, and it counts where it was.
//
// Time moves the index on in steps of at most kMaxStep messages, because its owner holds a lock
// meanwhile: IsBehind tells that there is more to do. Being behind never gives out what has
// expired.
//
// Per message: 40 bytes of state under an 8-byte key, 16 bytes in the order of visibility, 16 in
// the order of expiry if it expires.
#pragma once

#include <cstdint>
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

  // A step stays near a tenth of a millisecond.
  static constexpr int kMaxStep = 1024;

  // `seq` is new.
  void Insert(uint64_t seq, const MessageState& state, int64_t now_us);

  // nullptr when there is none. Valid until the next change.
  const MessageState* Find(uint64_t seq) const;
  bool IsOut(uint64_t seq) const;

  // `seq` is there and not out.
  MessageState CheckOut(uint64_t seq);
  // Ends a check-out: with a new state, or with the one that CheckOut gave.
  void CheckIn(uint64_t seq, const MessageState& state, int64_t now_us);
  // Ends a check-out: the message is gone.
  void Erase(uint64_t seq);
  void Clear();

  // The first `max` (≤ kMaxStep) ready messages, by (visible time, sequence). Fewer may come while
  // the index is behind.
  std::vector<uint64_t> Ready(int64_t now_us, int max);

  // One step: removes what has expired and appends it to `expired`.
  void Expire(int64_t now_us, std::vector<uint64_t>* expired);
  // One step: makes ready what has become visible.
  void Promote(int64_t now_us);
  bool IsBehind(int64_t now_us) const;

  // As of the last steps, if the index is behind.
  Counts CountsAt(int64_t now_us);
  // Insertion time of the oldest message; `now_us` when there is none.
  int64_t OldestInsertion(int64_t now_us) const;

 private:
  using Order = absl::btree_set<std::pair<int64_t, uint64_t>>;  // (time, sequence)

  enum Place : uint8_t { kReady, kHeldPlace, kDelayedPlace, kPlaces };
  static constexpr uint8_t kOutBit = 0x80;

  // Puts a message that is in no order into its orders and counts it.
  void Link(uint64_t seq, MessageState* state, int64_t now_us);
  // Takes a message out of its orders; it stays counted.
  void Unlink(uint64_t seq, const MessageState& state);
  void Uncount(const MessageState& state);

  absl::btree_map<uint64_t, MessageState> messages_;
  Order ready_;   // by visible time
  Order hidden_;  // by visible time
  Order expiring_;
  int64_t counts_[kPlaces] = {};
};

}  // namespace muster::queue::rocksdb
