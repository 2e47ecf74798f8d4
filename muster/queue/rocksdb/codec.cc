// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/codec.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::queue::rocksdb {

namespace {

constexpr uint8_t kRecordVersion = 1;
constexpr size_t kHeaderBytes = 1 + 8;     // ver, sum
constexpr size_t kStateBytes = 8 + 4 * 8;  // without sum
constexpr uint8_t kDedupVersion = 2;
constexpr uint8_t kStoredFlags = kHeld | kBegan | kSuspect | kNoted;

uint64_t Sum(absl::string_view bytes, absl::string_view key) {
  return XXH64(bytes.data(), bytes.size(), XXH64(key.data(), key.size(), 0));
}

std::string Seal(absl::string_view fields, absl::string_view key, uint8_t version) {
  std::string record;
  record.reserve(kHeaderBytes + fields.size());
  AppendLittle(&record, version);
  AppendLittle(&record, Sum(fields, key));
  record.append(fields.data(), fields.size());
  return record;
}

// Returns the fields of a sealed record; nullopt when its version or sum is wrong.
std::optional<absl::string_view> Unseal(absl::string_view record, absl::string_view key,
                                        uint8_t version) {
  if (record.size() < kHeaderBytes || static_cast<uint8_t>(record[0]) != version) {
    return std::nullopt;
  }
  const absl::string_view fields = record.substr(kHeaderBytes);
  if (LoadLittle<uint64_t>(record.data() + 1) != Sum(fields, key)) return std::nullopt;
  return fields;
}

std::string NumberKey(absl::string_view prefix, uint64_t number) {
  std::string key(prefix);
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

}  // namespace

std::string StoreKey() { return "s"; }
std::string QueueKey(uint64_t queue) { return NumberKey("q", queue); }
std::string CountersKey(uint64_t queue) { return NumberKey("c", queue); }

std::string NoteKey(uint64_t queue, uint64_t seq) {
  std::string key = NumberKey("n", queue);
  muster::rocksdb::AppendKey(seq, &key);
  return key;
}

std::string MessageKey(uint64_t queue, uint64_t seq) {
  std::string key;
  key.reserve(16);
  muster::rocksdb::AppendKey(queue, &key);
  muster::rocksdb::AppendKey(seq, &key);
  return key;
}

std::string PoisonBodyKey(uint64_t queue, uint64_t seq) {
  return MessageKey(queue | kPoisonBodies, seq);
}

std::string DedupKey(uint64_t queue, absl::string_view id) {
  return absl::StrCat(NumberKey("", queue), id);
}

std::optional<MessageAddress> ParseMessageKey(absl::string_view key) {
  if (key.size() != 16) return std::nullopt;
  return MessageAddress{muster::rocksdb::KeyNumber(key), muster::rocksdb::KeyNumber(key.substr(8))};
}

std::optional<uint64_t> ParseQueueNumber(absl::string_view key, size_t prefix_bytes) {
  if (key.size() < prefix_bytes + 8) return std::nullopt;
  return muster::rocksdb::KeyNumber(key.substr(prefix_bytes));
}

std::string EncodeState(const MessageState& state, absl::string_view key) {
  std::string record;
  record.reserve(kStateBytes + 4);
  AppendLittle(&record, kRecordVersion);
  AppendLittle(&record, static_cast<uint8_t>(state.flags & kStoredFlags));
  AppendLittle(&record, state.attempts);
  AppendLittle(&record, state.dequeue_count);
  AppendLittle(&record, state.visible_us);
  AppendLittle(&record, state.expiry_us);
  AppendLittle(&record, state.insertion_us);
  AppendLittle(&record, state.lease);
  AppendLittle(&record, static_cast<uint32_t>(Sum(record, key)));
  return record;
}

std::optional<MessageState> DecodeState(absl::string_view record, absl::string_view key) {
  if (record.size() != kStateBytes + 4 || record[0] != kRecordVersion) return std::nullopt;
  const auto sum = static_cast<uint32_t>(Sum(record.substr(0, kStateBytes), key));
  if (LoadLittle<uint32_t>(record.data() + kStateBytes) != sum) return std::nullopt;
  MessageState state;
  state.flags = LoadLittle<uint8_t>(record.data() + 1);
  state.attempts = LoadLittle<uint16_t>(record.data() + 2);
  state.dequeue_count = LoadLittle<uint32_t>(record.data() + 4);
  state.visible_us = LoadLittle<int64_t>(record.data() + 8);
  state.expiry_us = LoadLittle<int64_t>(record.data() + 16);
  state.insertion_us = LoadLittle<int64_t>(record.data() + 24);
  state.lease = LoadLittle<uint64_t>(record.data() + 32);
  return state;
}

std::string EncodeBodyHeader(absl::string_view body, absl::string_view key) {
  std::string header;
  AppendLittle(&header, kRecordVersion);
  AppendLittle(&header, Sum(body, key));
  return header;
}

bool StripToBody(std::string* record, absl::string_view key) {
  if (!Unseal(*record, key, kRecordVersion).has_value()) return false;
  record->erase(0, kHeaderBytes);
  return true;
}

absl::string_view SalvageBody(absl::string_view record) {
  return record.substr(std::min(kHeaderBytes, record.size()));
}

std::string EncodePoison(const PoisonRecord& poison, absl::string_view key) {
  std::string fields;
  AppendLittle(&fields, poison.insertion_us);
  AppendLittle(&fields, poison.ttl_us);
  AppendLittle(&fields, poison.time_us);
  AppendLittle(&fields, poison.attempts);
  AppendText(&fields, poison.reason);
  AppendText(&fields, poison.holder);
  return Seal(fields, key, kRecordVersion);
}

std::optional<PoisonRecord> DecodePoison(absl::string_view record, absl::string_view key) {
  const auto fields = Unseal(record, key, kRecordVersion);
  if (!fields.has_value()) return std::nullopt;
  ByteReader reader(*fields);
  PoisonRecord poison;
  poison.insertion_us = reader.Take<int64_t>();
  poison.ttl_us = reader.Take<int64_t>();
  poison.time_us = reader.Take<int64_t>();
  poison.attempts = reader.Take<int32_t>();
  poison.reason = reader.TakeText();
  poison.holder = reader.TakeText();
  if (!reader.done()) return std::nullopt;
  return poison;
}

std::string EncodeNote(const NoteRecord& note, absl::string_view key) {
  std::string fields;
  AppendText(&fields, note.holder);
  AppendLittle(&fields, static_cast<uint8_t>(note.origin.has_value() ? 1 : 0));
  if (note.origin.has_value()) {
    const NoteOrigin& origin = *note.origin;
    AppendLittle(&fields, origin.insertion_us);
    AppendLittle(&fields, absl::ToUnixMicros(origin.cause.time));
    AppendLittle(&fields, static_cast<int32_t>(origin.cause.attempts));
    AppendText(&fields, origin.queue.account);
    AppendText(&fields, origin.queue.name);
    AppendText(&fields, origin.message_id);
    AppendText(&fields, origin.cause.reason);
    AppendText(&fields, origin.cause.holder);
  }
  return Seal(fields, key, kRecordVersion);
}

std::optional<NoteRecord> DecodeNote(absl::string_view record, absl::string_view key) {
  const auto fields = Unseal(record, key, kRecordVersion);
  if (!fields.has_value()) return std::nullopt;
  ByteReader reader(*fields);
  NoteRecord note;
  note.holder = reader.TakeText();
  if (reader.Take<uint8_t>() == 1) {
    NoteOrigin& origin = note.origin.emplace();
    origin.insertion_us = reader.Take<int64_t>();
    origin.cause.time = absl::FromUnixMicros(reader.Take<int64_t>());
    origin.cause.attempts = reader.Take<int32_t>();
    origin.queue.account = reader.TakeText();
    origin.queue.name = reader.TakeText();
    origin.message_id = reader.TakeText();
    origin.cause.reason = reader.TakeText();
    origin.cause.holder = reader.TakeText();
  }
  if (!reader.done()) return std::nullopt;
  return note;
}

std::string EncodeDedup(const DedupRecord& dedup, absl::string_view key) {
  std::string fields;
  AppendLittle(&fields, dedup.seq);
  AppendLittle(&fields, dedup.put_us);
  AppendLittle(&fields, dedup.lease);
  AppendLittle(&fields, dedup.visible_us);
  AppendLittle(&fields, dedup.expiry_us);
  return Seal(fields, key, kDedupVersion);
}

std::optional<DedupRecord> DecodeDedup(absl::string_view record, absl::string_view key) {
  const bool is_first_version = !record.empty() && record[0] == kRecordVersion;
  const auto fields = Unseal(record, key, is_first_version ? kRecordVersion : kDedupVersion);
  if (!fields.has_value()) return std::nullopt;
  ByteReader reader(*fields);
  DedupRecord dedup;
  dedup.seq = reader.Take<uint64_t>();
  dedup.put_us = reader.Take<int64_t>();
  if (!is_first_version) {
    dedup.lease = reader.Take<uint64_t>();
    dedup.visible_us = reader.Take<int64_t>();
    dedup.expiry_us = reader.Take<int64_t>();
  }
  if (!reader.done()) return std::nullopt;
  return dedup;
}

void Counters::Add(const Counters& delta) {
  in += delta.in;
  out += delta.out;
  expired += delta.expired;
  stale += delta.stale;
  next_seq = std::max(next_seq, delta.next_seq);
}

std::string EncodeCounters(const Counters& counters) {
  std::string fields;
  AppendLittle(&fields, counters.in);
  AppendLittle(&fields, counters.out);
  AppendLittle(&fields, counters.expired);
  AppendLittle(&fields, counters.stale);
  AppendLittle(&fields, counters.next_seq);
  return Seal(fields, "", kRecordVersion);
}

std::optional<Counters> DecodeCounters(absl::string_view record) {
  const auto fields = Unseal(record, "", kRecordVersion);
  if (!fields.has_value()) return std::nullopt;
  ByteReader reader(*fields);
  Counters counters;
  counters.in = reader.Take<int64_t>();
  counters.out = reader.Take<int64_t>();
  counters.expired = reader.Take<int64_t>();
  counters.stale = reader.Take<int64_t>();
  counters.next_seq = reader.Take<uint64_t>();
  if (!reader.done()) return std::nullopt;
  return counters;
}

std::string EncodeQueue(const QueueRecord& queue, absl::string_view key) {
  std::string fields;
  AppendLittle(&fields, queue.dedup_floor);
  AppendText(&fields, queue.id.account);
  AppendText(&fields, queue.id.name);
  AppendLittle(&fields, static_cast<uint32_t>(queue.metadata.size()));
  for (const auto& [name, value] : queue.metadata) {
    AppendText(&fields, name);
    AppendText(&fields, value);
  }
  return Seal(fields, key, kRecordVersion);
}

std::optional<QueueRecord> DecodeQueue(absl::string_view record, absl::string_view key) {
  const auto fields = Unseal(record, key, kRecordVersion);
  if (!fields.has_value()) return std::nullopt;
  ByteReader reader(*fields);
  QueueRecord queue;
  queue.dedup_floor = reader.Take<uint64_t>();
  queue.id.account = reader.TakeText();
  queue.id.name = reader.TakeText();
  const auto pairs = reader.Take<uint32_t>();
  for (uint32_t i = 0; i < pairs && reader.ok(); ++i) {
    std::string name = reader.TakeText();
    queue.metadata[std::move(name)] = reader.TakeText();
  }
  if (!reader.done()) return std::nullopt;
  return queue;
}

std::string EncodeStore(const StoreRecord& store) {
  std::string fields;
  AppendLittle(&fields, store.epoch);
  AppendLittle(&fields, store.salt);
  AppendLittle(&fields, store.next_queue);
  return Seal(fields, StoreKey(), kFormatVersion);
}

std::optional<StoreRecord> DecodeStore(absl::string_view record) {
  // The fields are the same in all versions so far.
  const uint8_t version = FormatVersionOf(record);
  if (version == 0 || version > kFormatVersion) return std::nullopt;
  const auto fields = Unseal(record, StoreKey(), version);
  if (!fields.has_value()) return std::nullopt;
  ByteReader reader(*fields);
  StoreRecord store;
  store.epoch = reader.Take<uint64_t>();
  store.salt = reader.Take<uint64_t>();
  store.next_queue = reader.Take<uint64_t>();
  if (!reader.done()) return std::nullopt;
  return store;
}

uint8_t FormatVersionOf(absl::string_view store_record) {
  return store_record.empty() ? 0 : static_cast<uint8_t>(store_record[0]);
}

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

// Masks the bits; masking twice restores them.
GuidBits Masked(uint64_t salt, const GuidBits& bits) {
  return {bits.hash, bits.queue ^ (HashPair(bits.hash, 1, salt) & kMaxQueueNumber),
          bits.seq ^ (HashPair(bits.hash, 2, salt) & kMaxSequence)};
}

// xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx: the queue's 32 bits, 16 + 12 + 14 bits of the hash, the
// sequence's 48 bits. 4 and y (8 to b) mark a random GUID; other software treats the id as one.
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
  // Recomputing the id checks every bit of it, the dashes too.
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
