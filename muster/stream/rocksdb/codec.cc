// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/rocksdb/codec.h"

#include <xxhash.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/rocksdb/checked_value.h"

namespace muster::stream::rocksdb {
namespace {

using muster::rocksdb::AppendLittle;
using muster::rocksdb::LoadLittle;

constexpr uint8_t kRecordVersion = 1;
constexpr uint8_t kLostVersion = 2;
constexpr size_t kHeaderBytes = 1 + 8;         // ver, sum
constexpr size_t kEventFieldBytes = 8 + 8;     // appended, end_bytes
constexpr size_t kLostFieldBytes = 8 + 8 + 8;  // and through
constexpr size_t kEventKeyBytes = 8 + 4 + 8;
constexpr size_t kPartitionKeyBytes = 1 + 8 + 4;
// No retention: events stay for ever.
constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();
// A time that is not known.
constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

uint64_t Sum(absl::string_view bytes, absl::string_view key) {
  return XXH64(bytes.data(), bytes.size(), XXH64(key.data(), key.size(), 0));
}

// Fills the header of `record`, whose first kHeaderBytes were left out for it.
void Seal(absl::string_view key, uint8_t version, std::string* record) {
  const uint64_t sum = Sum(absl::string_view(*record).substr(kHeaderBytes), key);
  (*record)[0] = static_cast<char>(version);
  for (size_t i = 0; i < 8; ++i) (*record)[1 + i] = static_cast<char>(sum >> (8 * i));
}

std::string Unsealed(size_t field_bytes) {
  std::string record;
  record.reserve(kHeaderBytes + field_bytes);
  record.append(kHeaderBytes, '\0');
  return record;
}

// Returns the fields of a sealed record; nullopt when its version or sum is wrong, or it has fewer
// than `least` bytes of them.
std::optional<absl::string_view> Unseal(absl::string_view record, absl::string_view key,
                                        uint8_t version, size_t least) {
  if (record.size() < kHeaderBytes + least || static_cast<uint8_t>(record[0]) != version) {
    return std::nullopt;
  }
  const absl::string_view fields = record.substr(kHeaderBytes);
  if (LoadLittle<uint64_t>(record.data() + 1) != Sum(fields, key)) return std::nullopt;
  return fields;
}

void AppendKey32(uint32_t number, std::string* key) {
  for (int shift = 24; shift >= 0; shift -= 8) key->push_back(static_cast<char>(number >> shift));
}

uint32_t Key32(absl::string_view bytes) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

int64_t MicrosOf(absl::Time time) {
  return time == absl::InfinitePast() ? kNever : absl::ToUnixMicros(time);
}
absl::Time TimeOf(int64_t micros) {
  return micros == kNever ? absl::InfinitePast() : absl::FromUnixMicros(micros);
}

}  // namespace

std::string StoreKey() { return "s"; }
std::string StreamKey(absl::string_view name) { return absl::StrCat("n", name); }

std::string PartitionKey(const PartitionId& id) {
  std::string key = FirstPartitionKey(id.stream);
  AppendKey32(id.partition, &key);
  return key;
}

std::string EventKey(const PartitionId& id, int64_t offset) {
  std::string key;
  key.reserve(20);
  muster::rocksdb::AppendKey(id.stream, &key);
  AppendKey32(id.partition, &key);
  muster::rocksdb::AppendKey(static_cast<uint64_t>(offset), &key);
  return key;
}

std::string FirstPartitionKey(uint64_t number) {
  std::string key = "p";
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

std::string FirstEventKey(uint64_t number) {
  std::string key;
  muster::rocksdb::AppendKey(number, &key);
  return key;
}

std::optional<EventAddress> AddressIn(absl::string_view event_key) {
  if (event_key.size() != kEventKeyBytes) return std::nullopt;
  const uint64_t offset = muster::rocksdb::KeyNumber(event_key.substr(12));
  if (offset == 0 || offset >= INT64_MAX) return std::nullopt;
  return EventAddress{{muster::rocksdb::KeyNumber(event_key), Key32(event_key.substr(8))},
                      static_cast<int64_t>(offset)};
}

std::optional<PartitionId> PartitionIn(absl::string_view partition_key) {
  if (partition_key.size() != kPartitionKeyBytes || partition_key[0] != 'p') return std::nullopt;
  return PartitionId{muster::rocksdb::KeyNumber(partition_key.substr(1)),
                     Key32(partition_key.substr(9))};
}

std::optional<std::string> NameIn(absl::string_view stream_key) {
  if (stream_key.empty() || stream_key[0] != 'n') return std::nullopt;
  return std::string(stream_key.substr(1));
}

std::optional<int64_t> OffsetIn(absl::string_view event_key) {
  if (event_key.size() != 20) return std::nullopt;
  return static_cast<int64_t>(muster::rocksdb::KeyNumber(event_key.substr(12)));
}

std::string EncodeStore(const StoreRecord& store) {
  std::string record = Unsealed(8);
  AppendLittle(&record, store.next_stream);
  Seal(StoreKey(), kFormatVersion, &record);
  return record;
}

std::optional<StoreRecord> DecodeStore(absl::string_view record) {
  const auto fields = Unseal(record, StoreKey(), kFormatVersion, 8);
  if (!fields.has_value() || fields->size() != 8) return std::nullopt;
  return StoreRecord{LoadLittle<uint64_t>(fields->data())};
}

uint8_t FormatVersionOf(absl::string_view store_record) {
  return store_record.empty() ? 0 : static_cast<uint8_t>(store_record[0]);
}

bool IsSealed(absl::string_view record, absl::string_view key) {
  return !record.empty() && Unseal(record, key, static_cast<uint8_t>(record[0]), 0).has_value();
}

std::string EncodeStream(const StreamRecord& stream, absl::string_view key) {
  const StreamOptions& options = stream.options;
  std::string record = Unsealed(28);
  AppendLittle(&record, stream.number);
  AppendLittle(&record, static_cast<uint32_t>(options.partitions));
  AppendLittle(&record, options.retention == absl::InfiniteDuration()
                            ? kForEver
                            : absl::ToInt64Microseconds(options.retention));
  AppendLittle(&record, options.max_bytes);
  Seal(key, kRecordVersion, &record);
  return record;
}

std::optional<StreamRecord> DecodeStream(absl::string_view record, absl::string_view key) {
  const auto fields = Unseal(record, key, kRecordVersion, 28);
  if (!fields.has_value() || fields->size() != 28) return std::nullopt;
  StreamRecord stream;
  stream.number = LoadLittle<uint64_t>(fields->data());
  stream.options.partitions = static_cast<int>(LoadLittle<uint32_t>(fields->data() + 8));
  const auto retention = LoadLittle<int64_t>(fields->data() + 12);
  stream.options.retention =
      retention == kForEver ? absl::InfiniteDuration() : absl::Microseconds(retention);
  stream.options.max_bytes = LoadLittle<int64_t>(fields->data() + 20);
  if (!ValidateOptions(stream.options).ok()) return std::nullopt;
  return stream;
}

std::string EncodePartition(const PartitionRecord& partition, absl::string_view key) {
  std::string record = Unsealed(32);
  AppendLittle(&record, partition.first);
  AppendLittle(&record, partition.next);
  AppendLittle(&record, partition.end_bytes);
  AppendLittle(&record, MicrosOf(partition.last_appended));
  Seal(key, kRecordVersion, &record);
  return record;
}

std::optional<PartitionRecord> DecodePartition(absl::string_view record, absl::string_view key) {
  const auto fields = Unseal(record, key, kRecordVersion, 32);
  if (!fields.has_value() || fields->size() != 32) return std::nullopt;
  const PartitionRecord partition{
      LoadLittle<int64_t>(fields->data()), LoadLittle<int64_t>(fields->data() + 8),
      LoadLittle<int64_t>(fields->data() + 16), TimeOf(LoadLittle<int64_t>(fields->data() + 24))};
  if (partition.first < 1 || partition.next < partition.first) return std::nullopt;
  return partition;
}

std::string EncodeEvent(absl::Time appended, int64_t bytes_before, absl::string_view content,
                        absl::string_view key) {
  const size_t bytes = kHeaderBytes + kEventFieldBytes + content.size();
  std::string record = Unsealed(kEventFieldBytes + content.size());
  AppendLittle(&record, MicrosOf(appended));
  AppendLittle(&record, bytes_before + static_cast<int64_t>(bytes));
  absl::StrAppend(&record, content);
  Seal(key, kRecordVersion, &record);
  return record;
}

std::string EncodeLost(absl::Time appended, int64_t end_bytes, int64_t through,
                       absl::string_view key) {
  std::string record = Unsealed(kLostFieldBytes);
  AppendLittle(&record, MicrosOf(appended));
  AppendLittle(&record, end_bytes);
  AppendLittle(&record, through);
  Seal(key, kLostVersion, &record);
  return record;
}

std::optional<EventRecord> DecodeEvent(absl::string_view record, absl::string_view key) {
  if (const auto lost = Unseal(record, key, kLostVersion, kLostFieldBytes); lost.has_value()) {
    const auto through = LoadLittle<int64_t>(lost->data() + 16);
    const bool makes_sense =
        lost->size() == kLostFieldBytes && OffsetIn(key).value_or(0) <= through;
    if (!makes_sense) return std::nullopt;
    return EventRecord{TimeOf(LoadLittle<int64_t>(lost->data())),
                       LoadLittle<int64_t>(lost->data() + 8),
                       {},
                       through};
  }
  const auto fields = Unseal(record, key, kRecordVersion, kEventFieldBytes);
  if (!fields.has_value()) return std::nullopt;
  return EventRecord{TimeOf(LoadLittle<int64_t>(fields->data())),
                     LoadLittle<int64_t>(fields->data() + 8), fields->substr(kEventFieldBytes)};
}

}  // namespace muster::stream::rocksdb
