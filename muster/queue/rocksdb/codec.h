// SPDX-License-Identifier: Apache-2.0

// The stored format of the embedded queue, as pure functions.
//
// Column families and their keys; u64 in keys is big-endian, so that a queue's messages lie
// together in the order of their puts. All other integers are little-endian, times are µs since
// 1970.
//
//   family   key                         value
//   meta     's'                         store record
//   meta     'q' queue:u64               queue record
//   meta     'c' queue:u64               counters (merged: storage.cc)
//   meta     'n' queue:u64 seq:u64       note record, of a message whose state has kNoted
//   state    queue:u64 seq:u64           state record: all that changes as a message lives
//   body     queue:u64 seq:u64           body record
//   body     queue|2^63:u64 seq:u64      body record of a poison message (Clear does not reach it)
//   poison   queue:u64 seq:u64           poison record: the cause
//   dedup    queue:u64 id                dedup record
//
//   state    |ver:1|flags:1|attempts:2|dequeues:4|visible:8|expiry:8|insertion:8|lease:8|sum:4|
//   body     |ver:1|sum:8|body …|
//   poison   |ver:1|sum:8|insertion:8|ttl:8|time:8|attempts:4|reason:4+n|holder:4+n|
//   note     |ver:1|sum:8|holder:4+n|moved:1|  and if moved is 1:
//            |insertion:8|time:8|attempts:4|account:4+n|name:4+n|id:4+n|reason:4+n|holder:4+n|
//   dedup    |ver:1|sum:8|seq:8|put:8|lease:8|visible:8|expiry:8|  (version 1 ends with put)
//   counters |ver:1|sum:8|in:8|out:8|expired:8|stale:8|next_seq:8|
//   queue    |ver:1|sum:8|dedup_floor:8|account:4+n|name:4+n|pairs:4|(name:4+n|value:4+n) …|
//   store    |ver:1|sum:8|epoch:8|salt:8|next_queue:8|
//
// `sum` is XXH64 over all bytes after it (state: over all bytes before it, cut to 32 bits). It is
// seeded with the key, so that a record under a wrong key counts as damaged too.
//
// To change a record: give it the next version byte in codec.cc, write only the new form, keep
// reading the old one, and add (never edit) a golden test. A change that an older muster must not
// open raises kFormatVersion, the version of the store record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/base/check.h"
#include "muster/queue/queue_store.h"
#include "muster/rocksdb/checked_value.h"

namespace muster::queue::rocksdb {

inline constexpr int64_t kNeverUs = INT64_MAX;
// Set in the queue number of a poison message's body key.
inline constexpr uint64_t kPoisonBodies = uint64_t{1} << 63;
// Behind the epoch in a lease: a trillion leases per open.
inline constexpr int kLeaseCounterBits = 40;

// --- keys ---

std::string StoreKey();
std::string QueueKey(uint64_t queue);
std::string CountersKey(uint64_t queue);
std::string NoteKey(uint64_t queue, uint64_t seq);
// The key of state, body and poison records.
std::string MessageKey(uint64_t queue, uint64_t seq);
std::string PoisonBodyKey(uint64_t queue, uint64_t seq);
std::string DedupKey(uint64_t queue, absl::string_view id);

struct MessageAddress {
  uint64_t queue = 0;
  uint64_t seq = 0;
};
// nullopt when `key` is no message key.
std::optional<MessageAddress> ParseMessageKey(absl::string_view key);
// The number in a queue, counters or dedup key after `prefix_bytes`; nullopt when it is too short.
std::optional<uint64_t> ParseQueueNumber(absl::string_view key, size_t prefix_bytes);

// --- records; each Decode returns nullopt when the record is damaged ---

enum StateFlag : uint8_t {
  kHeld = 1,       // leased; an invisible message without this flag is delayed
  kBegan = 2,      // an attempt began under this lease
  kSuspect = 4,    // an attempt that began under an earlier lease was never settled
  kNoted = 8,      // it has a note record
  kDamaged = 128,  // its record could not be decoded; in memory only
};

// Kept in memory for every message, so its size matters.
struct MessageState {
  int64_t visible_us = 0;
  int64_t expiry_us = kNeverUs;
  int64_t insertion_us = 0;
  uint64_t lease = 0;
  uint32_t dequeue_count = 0;
  uint16_t attempts = 0;
  uint8_t flags = 0;
  uint8_t place = 0;  // MessageIndex's own, not stored

  bool has(StateFlag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(MessageState) == 40);

std::string EncodeState(const MessageState& state, absl::string_view key);
std::optional<MessageState> DecodeState(absl::string_view record, absl::string_view key);

// The header of a body record; header and body are written without concatenating them.
std::string EncodeBodyHeader(absl::string_view body, absl::string_view key);
// Removes the header, so that `record` holds only the body. Returns false, and changes nothing,
// when the record is damaged.
bool StripToBody(std::string* record, absl::string_view key);
// The body of a damaged record, unchecked.
absl::string_view SalvageBody(absl::string_view record);

struct PoisonRecord {
  int64_t insertion_us = 0;
  int64_t ttl_us = kNeverUs;
  int64_t time_us = 0;
  int32_t attempts = 0;
  std::string reason;
  std::string holder;
};
std::string EncodePoison(const PoisonRecord& poison, absl::string_view key);
std::optional<PoisonRecord> DecodePoison(absl::string_view record, absl::string_view key);

// What is kept beside a message: who received it last, and where it came from, if it was moved here
// with a cause.
struct NoteOrigin {
  queue::QueueId queue;
  std::string message_id;
  int64_t insertion_us = 0;
  queue::Cause cause;  // the time in µs
};
struct NoteRecord {
  std::string holder;
  std::optional<NoteOrigin> origin;
};
std::string EncodeNote(const NoteRecord& note, absl::string_view key);
std::optional<NoteRecord> DecodeNote(absl::string_view record, absl::string_view key);

struct DedupRecord {
  uint64_t seq = 0;
  int64_t put_us = 0;
  // Of the state that the put wrote; 0, 0 and kNeverUs in a record of version 1.
  uint64_t lease = 0;
  int64_t visible_us = 0;
  int64_t expiry_us = kNeverUs;
};
std::string EncodeDedup(const DedupRecord& dedup, absl::string_view key);
std::optional<DedupRecord> DecodeDedup(absl::string_view record, absl::string_view key);

// As a stored record: the totals of a queue. As an operand in a batch: what the batch adds to the
// totals, and the first sequence that is still free after it.
struct Counters {
  int64_t in = 0;
  int64_t out = 0;
  int64_t expired = 0;
  int64_t stale = 0;
  uint64_t next_seq = 0;

  // Adds the totals; next_seq becomes the larger of both.
  void Add(const Counters& delta);
};
// The merge operator combines operands without their key's help, so the sum is not seeded.
std::string EncodeCounters(const Counters& counters);
std::optional<Counters> DecodeCounters(absl::string_view record);

struct QueueRecord {
  queue::QueueId id;
  queue::Metadata metadata;
  uint64_t dedup_floor = 0;  // dedup ids of messages below were forgotten by Clear
};
std::string EncodeQueue(const QueueRecord& queue, absl::string_view key);
std::optional<QueueRecord> DecodeQueue(absl::string_view record, absl::string_view key);

inline constexpr uint8_t kFormatVersion = 1;

struct StoreRecord {
  uint64_t epoch = 0;       // how often the store was opened for writing
  uint64_t salt = 0;        // random; makes ids of two stores differ
  uint64_t next_queue = 1;  // queue numbers are never used twice
};
std::string EncodeStore(const StoreRecord& store);
std::optional<StoreRecord> DecodeStore(absl::string_view record);
// 0 when the record is empty.
uint8_t FormatVersionOf(absl::string_view store_record);

// The two names of a message outside the engine: its id (a GUID) and the receipt of a lease. Both
// are computed from (queue, sequence), never stored, and can be decoded.

inline constexpr uint64_t kMaxQueueNumber = (uint64_t{1} << 32) - 1;
inline constexpr uint64_t kMaxSequence = (uint64_t{1} << 48) - 1;

// Returns a GUID that looks random: 42 bits of a keyed hash of (queue, seq), then queue (32 bits)
// and seq (48 bits) under a mask derived from the hash. `salt` is unique to the store, so that two
// stores never produce the same id. Queue and seq are within the two bounds above.
std::string MessageIdOf(uint64_t salt, uint64_t queue, uint64_t seq);
// The sequence; nullopt when `id` is not the id of a message of this store and queue.
std::optional<uint64_t> SequenceOf(uint64_t salt, uint64_t queue, absl::string_view id);

struct ReceiptParts {
  uint64_t seq = 0;
  uint64_t lease = 0;  // names one lease for ever: (engine epoch << 40) + a counter
};
// base64url of |ver:1|seq:8|lease:8|sum:4|, the sum seeded with the store's salt.
queue::Receipt EncodeReceipt(uint64_t salt, const ReceiptParts& parts);
// nullopt when this store never issued such a receipt.
std::optional<ReceiptParts> DecodeReceipt(uint64_t salt, absl::string_view receipt);

// Little-endian integers and length-prefixed strings: the elements of all records.

using muster::rocksdb::AppendLittle;
using muster::rocksdb::LoadLittle;

inline void AppendText(std::string* out, absl::string_view text) {
  MUSTER_CHECK(text.size() <= UINT32_MAX, "bytes ", text.size());
  AppendLittle(out, static_cast<uint32_t>(text.size()));
  out->append(text.data(), text.size());
}

// Takes values from the front. After the first value that is missing, ok() is false and every
// further value is empty.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : rest_(bytes) {}

  template <typename Int>
  Int Take() {
    if (!ok_ || rest_.size() < sizeof(Int)) return Fail<Int>();
    const Int value = LoadLittle<Int>(rest_.data());
    rest_.remove_prefix(sizeof(Int));
    return value;
  }

  std::string TakeText() {
    const auto size = Take<uint32_t>();
    if (!ok_ || rest_.size() < size) return Fail<std::string>();
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  template <typename T>
  T Fail() {
    ok_ = false;
    return T();
  }

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace muster::queue::rocksdb
