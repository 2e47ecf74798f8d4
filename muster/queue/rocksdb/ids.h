// The two names of a message that leave the engine: its id (a GUID) and the receipt of a lease.
// Both are computed from (queue, sequence), never stored, and can be turned back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/queue/queue_store.h"

namespace muster::queue::rocksdb {

inline constexpr uint64_t kMaxQueueNumber = (uint64_t{1} << 32) - 1;
inline constexpr uint64_t kMaxSequence = (uint64_t{1} << 48) - 1;

// A GUID that looks random: 42 bits of a keyed hash of (queue, seq), then queue (32 bits) and seq
// (48 bits) under a mask that the hash yields. `salt` is the store's, so that two stores never give
// the same id. Queue and seq are within the two bounds above.
std::string MessageIdOf(uint64_t salt, uint64_t queue, uint64_t seq);
// The sequence; nullopt when `id` is not the id of a message of this store and queue.
std::optional<uint64_t> SequenceOf(uint64_t salt, uint64_t queue, absl::string_view id);

struct ReceiptParts {
  uint64_t seq = 0;
  uint64_t lease = 0;  // names one lease for ever: (engine epoch << 40) + a counter
};
// base64url of |ver:1|seq:8|lease:8|sum:4|, the sum seeded with the store's salt.
queue::Receipt EncodeReceipt(uint64_t salt, const ReceiptParts& parts);
// nullopt when this store never gave such a receipt.
std::optional<ReceiptParts> DecodeReceipt(uint64_t salt, absl::string_view receipt);

}  // namespace muster::queue::rocksdb
