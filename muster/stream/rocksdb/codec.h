// SPDX-License-Identifier: Apache-2.0

// The stored format of embedded event streams, as pure functions. docs/storage_format.md shows all
// formats together.
//
// Column families and their keys; integers in keys are big-endian, so that a partition's events lie
// together in the order of their offsets. All other integers are little-endian, times are µs since
// 1970.
//
//   family   key                                       value
//   meta     's'                                       store record
//   meta     'n' name                                  stream record
//   meta     'p' stream:u64 partition:u32              partition record; none before a first trim
//   events   stream:u64 partition:u32 offset:u64       event record
//
//   store     |ver:1|sum:8|next_stream:8|
//   stream    |ver:1|sum:8|number:8|partitions:4|retention:8|max_bytes:8|
//   partition |ver:1|sum:8|first:8|next:8|end_bytes:8|last_appended:8|
//   event     |ver:1|sum:8|appended:8|end_bytes:8|content … (event_codec.h)|
//   lost      |ver:2|sum:8|appended:8|end_bytes:8|through:8|
//
// A repair writes the lost record in the place of an event that is damaged or missing: the events
// from its offset to `through` are gone, and readers pass over them.
//
// `sum` is XXH64 over all bytes after it, seeded with the key, so that a record under a wrong key
// counts as damaged too. `end_bytes` counts the bytes of the partition's event records from its
// beginning to the end of this one: so the size of any stretch is a difference of two records.
//
// To change a record: give it the next version byte in codec.cc, write only the new form, keep
// reading the old one, and add (never edit) a golden test. A change that an older muster must not
// open raises kFormatVersion, the version of the store record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/stream/event_stream_store.h"

namespace muster::stream::rocksdb {

// --- keys ---

struct PartitionId {
  uint64_t stream = 0;  // its number, never used twice
  uint32_t partition = 0;
};

std::string StoreKey();
std::string StreamKey(absl::string_view name);
std::string PartitionKey(const PartitionId& id);
std::string EventKey(const PartitionId& id, int64_t offset);
// Below every partition and event key of the stream `number`, and above those of the one before.
std::string FirstPartitionKey(uint64_t number);
std::string FirstEventKey(uint64_t number);
struct EventAddress {
  PartitionId id;
  int64_t offset = 0;  // at least 1
};
// What a key says; nullopt when it is none of its kind.
std::optional<EventAddress> AddressIn(absl::string_view event_key);
std::optional<PartitionId> PartitionIn(absl::string_view partition_key);
// The name in a stream key, or the offset in an event key; nullopt when it is none.
std::optional<std::string> NameIn(absl::string_view stream_key);
std::optional<int64_t> OffsetIn(absl::string_view event_key);

// --- records; each Decode returns nullopt when the record is damaged ---

inline constexpr uint8_t kFormatVersion = 1;

struct StoreRecord {
  uint64_t next_stream = 1;
};
std::string EncodeStore(const StoreRecord& store);
std::optional<StoreRecord> DecodeStore(absl::string_view record);
// 0 when the record is empty.
uint8_t FormatVersionOf(absl::string_view store_record);
// Whether the checksum of a record of any version is right.
bool IsSealed(absl::string_view record, absl::string_view key);

struct StreamRecord {
  uint64_t number = 0;
  StreamOptions options;
};
std::string EncodeStream(const StreamRecord& stream, absl::string_view key);
std::optional<StreamRecord> DecodeStream(absl::string_view record, absl::string_view key);

// Written when events go: what remains of those that have gone.
struct PartitionRecord {
  int64_t first = 1;
  int64_t next = 1;       // events from here on may follow
  int64_t end_bytes = 0;  // of the event before `next`
  absl::Time last_appended = absl::InfinitePast();
};
std::string EncodePartition(const PartitionRecord& partition, absl::string_view key);
std::optional<PartitionRecord> DecodePartition(absl::string_view record, absl::string_view key);

struct EventRecord {
  absl::Time appended;
  int64_t end_bytes = 0;
  absl::string_view content;  // a view into the record
  int64_t lost_through = 0;   // above 0: it is a lost record, without content
};
// `bytes_before`: end_bytes of the event before.
std::string EncodeEvent(absl::Time appended, int64_t bytes_before, absl::string_view content,
                        absl::string_view key);
// The events from the key's offset to `through` are lost.
std::string EncodeLost(absl::Time appended, int64_t end_bytes, int64_t through,
                       absl::string_view key);
// Of an event, or of lost ones.
std::optional<EventRecord> DecodeEvent(absl::string_view record, absl::string_view key);

}  // namespace muster::stream::rocksdb
