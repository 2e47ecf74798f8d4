#include "muster/queue/rocksdb/ids.h"

#include <xxhash.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "muster/queue/rocksdb/byte_stream.h"

namespace muster::queue::rocksdb {
namespace {

constexpr uint8_t kReceiptVersion = 1;
constexpr size_t kReceiptBytes = 1 + 8 + 8 + 4;
constexpr size_t kGuidBytes = 36;

uint64_t HashPair(uint64_t a, uint64_t b, uint64_t seed) {
  const uint64_t pair[2] = {a, b};
  return XXH64(pair, sizeof(pair), seed);
}

// The 122 free bits of a GUID, as hash (42), queue (32) and seq (48).
struct GuidBits {
  uint64_t hash = 0;
  uint64_t queue = 0;
  uint64_t seq = 0;
};

uint64_t GuidHash(uint64_t salt, uint64_t queue, uint64_t seq) {
  return HashPair(queue, seq, salt) >> 22;
}

// Masking twice gives the bits back.
GuidBits Masked(uint64_t salt, const GuidBits& bits) {
  return {bits.hash, bits.queue ^ (HashPair(bits.hash, 1, salt) & kMaxQueueNumber),
          bits.seq ^ (HashPair(bits.hash, 2, salt) & kMaxSequence)};
}

// xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx: the queue's 32 bits, 16 + 12 + 14 bits of the hash, the
// sequence's 48 bits. 4 and y (8 to b) mark a random GUID, which is what it is to everybody else.
std::string FormatGuid(const GuidBits& bits) {
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", bits.queue, bits.hash >> 26,
                         bits.hash >> 14 & 0xfff, 0x8000 | (bits.hash & 0x3fff), bits.seq);
}

std::optional<GuidBits> ParseGuid(absl::string_view id) {
  if (id.size() != kGuidBytes) return std::nullopt;
  uint64_t part[5] = {};
  constexpr size_t kStart[5] = {0, 9, 14, 19, 24};
  constexpr size_t kLength[5] = {8, 4, 4, 4, 12};
  for (int i = 0; i < 5; ++i) {
    if (!absl::SimpleHexAtoi(id.substr(kStart[i], kLength[i]), &part[i])) return std::nullopt;
  }
  const uint64_t hash = part[1] << 26 | (part[2] & 0xfff) << 14 | (part[3] & 0x3fff);
  return GuidBits{hash, part[0], part[4]};
}

uint32_t ReceiptSum(absl::string_view bytes, uint64_t salt) {
  return static_cast<uint32_t>(XXH64(bytes.data(), bytes.size(), salt));
}

}  // namespace

std::string MessageIdOf(uint64_t salt, uint64_t queue, uint64_t seq) {
  return FormatGuid(Masked(salt, {GuidHash(salt, queue, seq), queue, seq}));
}

std::optional<uint64_t> SequenceOf(uint64_t salt, uint64_t queue, absl::string_view id) {
  const std::string lower = absl::AsciiStrToLower(id);
  const std::optional<GuidBits> masked = ParseGuid(lower);
  if (!masked.has_value()) return std::nullopt;
  const uint64_t seq = Masked(salt, *masked).seq;
  // Making the id anew checks every bit of it, the dashes too.
  if (MessageIdOf(salt, queue, seq) != lower) return std::nullopt;
  return seq;
}

queue::Receipt EncodeReceipt(uint64_t salt, const ReceiptParts& parts) {
  std::string bytes;
  bytes.reserve(kReceiptBytes);
  AppendLittle(&bytes, kReceiptVersion);
  AppendLittle(&bytes, parts.seq);
  AppendLittle(&bytes, parts.lease);
  AppendLittle(&bytes, ReceiptSum(bytes, salt));
  return absl::WebSafeBase64Escape(bytes);
}

std::optional<ReceiptParts> DecodeReceipt(uint64_t salt, absl::string_view receipt) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(receipt, &bytes)) return std::nullopt;
  if (bytes.size() != kReceiptBytes || bytes[0] != kReceiptVersion) return std::nullopt;
  const absl::string_view summed = absl::string_view(bytes).substr(0, kReceiptBytes - 4);
  if (LoadLittle<uint32_t>(bytes.data() + summed.size()) != ReceiptSum(summed, salt)) {
    return std::nullopt;
  }
  return ReceiptParts{LoadLittle<uint64_t>(bytes.data() + 1),
                      LoadLittle<uint64_t>(bytes.data() + 9)};
}

}  // namespace muster::queue::rocksdb
