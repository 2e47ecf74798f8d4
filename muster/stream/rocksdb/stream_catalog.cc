// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/rocksdb/stream_catalog.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/stream/rocksdb/partition_log.h"

namespace muster::stream::rocksdb {

using os::Damage;

absl::Status StreamCatalog::Read() {
  MUSTER_RETURN_IF_ERROR(
      session_->ForEach(kMeta, [this](absl::string_view key, absl::string_view value) {
        session_->Count(1);
        return ReadRecord(key, value);
      }));
  MUSTER_RETURN_IF_ERROR(MendStreams());
  return SortPartitionRecords();
}

absl::Status StreamCatalog::ReadRecord(absl::string_view key, absl::string_view value) {
  if (key == StoreKey()) return ReadStore(value);
  if (NameIn(key).has_value()) return ReadStream(key, value);
  if (PartitionIn(key).has_value()) {
    partition_records_.push_back({std::string(key), std::string(value)});
    return absl::OkStatus();
  }
  return RemoveDamaged(kMeta, "record", key, value, "no record has such a key");
}

absl::Status StreamCatalog::ReadStore(absl::string_view value) {
  store_ = std::string(value);
  sound_store_ = DecodeStore(value);
  const bool newer = FormatVersionOf(value) > kFormatVersion;
  // A damaged version byte is no proof: a newer muster writes a checksum, too.
  if (newer && IsSealed(value, StoreKey())) {
    return absl::FailedPreconditionError("the event streams were written by a newer muster");
  }
  return absl::OkStatus();
}

absl::Status StreamCatalog::ReadStream(absl::string_view key, absl::string_view value) {
  const std::string name = *NameIn(key);
  const std::optional<StreamRecord> record = DecodeStream(value, key);
  if (record.has_value() && ValidateStreamName(name).ok()) {
    AddStream(name, *record);
  } else {
    damaged_streams_.push_back({std::string(key), std::string(value)});
  }
  return absl::OkStatus();
}

void StreamCatalog::AddStream(const std::string& name, const StreamRecord& record) {
  names_.insert(name);
  numbers_.insert(record.number);
  for (int i = 0; i < record.options.partitions; ++i) {
    const PartitionId id{record.number, static_cast<uint32_t>(i)};
    partitions_[{id.stream, id.partition}] = {
        .id = id, .name = absl::StrCat("stream '", name, "' partition ", i)};
  }
}

PartitionFacts* StreamCatalog::Find(const PartitionId& id) {
  const auto found = partitions_.find({id.stream, id.partition});
  return found == partitions_.end() ? nullptr : &found->second;
}

absl::Status StreamCatalog::ForEachPartition(
    absl::FunctionRef<absl::Status(PartitionFacts*)> visit) {
  for (auto& [_, facts] : partitions_) MUSTER_RETURN_IF_ERROR(visit(&facts));
  return absl::OkStatus();
}

absl::Status StreamCatalog::RemoveDamaged(size_t family, absl::string_view kind,
                                          absl::string_view key, absl::string_view value,
                                          absl::string_view why) {
  Damage damage{.kind = std::string(kind),
                .name = absl::StrCat("key ", absl::BytesToHexString(key)),
                .why = std::string(why),
                .remedy = "the record is taken away"};
  damage.records = {session_->Stored(family, key, value)};
  return session_->Found(std::move(damage));
}

// One seek for each stream, and one for each partition of those without a record.
absl::StatusOr<std::map<uint64_t, int>> StreamCatalog::FindOrphans() {
  std::map<uint64_t, int> orphans;
  for (std::string from;;) {
    const muster::rocksdb::RecordCursor cursor = session_->Read(kEvents, from);
    if (!cursor.valid()) {
      MUSTER_RETURN_IF_ERROR(cursor.status());
      return orphans;
    }
    const std::optional<EventAddress> address = AddressIn(cursor.key());
    from = std::string(cursor.key()) + '\0';
    if (!address.has_value()) continue;
    const uint64_t number = address->id.stream;
    if (!numbers_.contains(number) && HasSoundEvent(number)) {
      MUSTER_ASSIGN_OR_RETURN(orphans[number], PartitionsOf(number));
    }
    if (number == UINT64_MAX) return orphans;
    from = FirstEventKey(number + 1);
  }
}

bool StreamCatalog::HasSoundEvent(uint64_t number) const {
  bool sound = false;
  const absl::Status read = session_->ForEach(
      kEvents,
      [&sound](absl::string_view key, absl::string_view value) {
        sound = DecodeEvent(value, key).has_value();
        return sound ? absl::CancelledError() : absl::OkStatus();
      },
      FirstEventKey(number), FirstEventKey(number + 1));
  return sound || (!read.ok() && !absl::IsDataLoss(read));
}

absl::StatusOr<int> StreamCatalog::PartitionsOf(uint64_t number) const {
  int partitions = 1;
  for (uint32_t from = 0;;) {
    const muster::rocksdb::RecordCursor cursor =
        session_->Read(kEvents, EventKey({number, from}, 0));
    MUSTER_RETURN_IF_ERROR(cursor.valid() ? absl::OkStatus() : cursor.status());
    const std::optional<EventAddress> address =
        cursor.valid() ? AddressIn(cursor.key()) : std::nullopt;
    if (!address.has_value() || address->id.stream != number) return partitions;
    if (address->id.partition >= kMaxPartitions) return partitions;
    partitions = static_cast<int>(address->id.partition) + 1;
    from = address->id.partition + 1;
  }
}

// A record names the stream in its key and the number in its value: if one of them is damaged, and
// one number has no record, these belong together.
absl::Status StreamCatalog::MendStreams() {
  MUSTER_ASSIGN_OR_RETURN(const auto orphans, FindOrphans());
  const bool one = damaged_streams_.size() == 1 && orphans.size() == 1;
  if (one) {
    const Damaged& damaged = damaged_streams_.front();
    const std::string name = *NameIn(damaged.key);
    const auto& [number, partitions] = *orphans.begin();
    if (ValidateStreamName(name).ok()) return Adopt(name, number, partitions, damaged);
  }
  for (const Damaged& damaged : damaged_streams_) {
    Damage damage{.kind = "stream",
                  .name = absl::StrCat("stream '", absl::CHexEscape(*NameIn(damaged.key)), "'"),
                  .why = "its record is damaged",
                  .remedy = orphans.empty()
                                ? "the stream, of which there is no event, is taken away"
                                : "the record is taken away; the events are under another name"};
    damage.records = {session_->Stored(kMeta, damaged.key, damaged.value)};
    MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  }
  int suffix = 1;
  for (const auto& [number, partitions] : orphans) {
    std::string name;
    do {
      name = absl::StrCat("recovered-", suffix++);
    } while (names_.contains(name));
    MUSTER_RETURN_IF_ERROR(Adopt(name, number, partitions, std::nullopt));
  }
  return absl::OkStatus();
}

absl::Status StreamCatalog::Adopt(const std::string& name, uint64_t number, int partitions,
                                  const std::optional<Damaged>& damaged) {
  StreamRecord record;
  record.number = number;
  record.options.partitions = partitions;
  record.options.retention = absl::InfiniteDuration();
  Damage damage{.kind = "stream",
                .name = absl::StrCat("stream '", name, "'"),
                .why = damaged.has_value() ? "its record is damaged" : "its record is not there",
                .remedy = absl::StrCat("is made again with ", partitions,
                                       partitions == 1 ? " partition" : " partitions",
                                       ", as events are in, and keeps events for ever")};
  if (damaged.has_value()) {
    damage.records = {session_->Stored(kMeta, damaged->key, damaged->value)};
  }
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kMeta, StreamKey(name), EncodeStream(record, StreamKey(name)));
  AddStream(name, record);
  return absl::OkStatus();
}

absl::Status StreamCatalog::SortPartitionRecords() {
  for (Damaged& stored : partition_records_) {
    PartitionFacts* const facts = Find(*PartitionIn(stored.key));
    if (facts == nullptr) {
      MUSTER_RETURN_IF_ERROR(RemoveDamaged(kMeta, "partition", stored.key, stored.value,
                                           "there is no such stream or partition"));
      continue;
    }
    facts->record = DecodePartition(stored.value, stored.key);
    if (!facts->record.has_value()) facts->damaged = std::move(stored.value);
  }
  partition_records_.clear();
  return absl::OkStatus();
}

absl::Status StreamCatalog::Finish() {
  MUSTER_RETURN_IF_ERROR(
      ForEachPartition([this](PartitionFacts* facts) { return MendPartition(facts); }));
  return MendStore();
}

absl::Status StreamCatalog::MendPartition(PartitionFacts* facts) {
  if (!facts->damaged.has_value()) return absl::OkStatus();
  const std::string key = PartitionKey(facts->id);
  Damage damage{.kind = "partition",
                .name = facts->name,
                .why = "its record is damaged",
                .remedy = facts->has_events
                              ? absl::StrCat("is made again: it begins at ", facts->rebuilt.first)
                              : "the record is taken away; without events, offsets begin anew"};
  damage.records = {session_->Stored(kMeta, key, *facts->damaged)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  if (facts->has_events) session_->Put(kMeta, key, EncodePartition(facts->rebuilt, key));
  return absl::OkStatus();
}

absl::Status StreamCatalog::MendStore() {
  const uint64_t above = numbers_.empty() ? 1 : *numbers_.rbegin() + 1;
  if (sound_store_.has_value() && sound_store_->next_stream >= above) return absl::OkStatus();
  if (!store_.has_value() && numbers_.empty()) return absl::OkStatus();
  Damage damage{.kind = "store",
                .name = "the event streams",
                .why = !store_.has_value()         ? "it is not there"
                       : !sound_store_.has_value() ? "it is damaged"
                                                   : "it would give a number again",
                .remedy = absl::StrCat("the next stream has number ", above)};
  if (store_.has_value()) damage.records = {session_->Stored(kMeta, StoreKey(), *store_)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kMeta, StoreKey(), EncodeStore({above}));
  return absl::OkStatus();
}

}  // namespace muster::stream::rocksdb
