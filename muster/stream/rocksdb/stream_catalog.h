// SPDX-License-Identifier: Apache-2.0

// StreamCatalog: the records of the store, of streams and of partitions, as a check reads them and
// a repair mends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/rocksdb/repair_session.h"
#include "muster/stream/rocksdb/codec.h"

namespace muster::stream::rocksdb {

// What is known of a partition.
struct PartitionFacts {
  PartitionId id;
  std::string name;  // for messages
  std::optional<PartitionRecord> record = std::nullopt;
  std::optional<std::string> damaged = std::nullopt;  // the record, as it is stored
  // Found by the check of the events:
  bool has_events = false;
  int64_t first = 1;
  PartitionRecord rebuilt = {};
};

// Not thread-safe. Holds an entry for each partition.
class StreamCatalog {
 public:
  // `session` is not owned.
  explicit StreamCatalog(muster::rocksdb::RepairSession* session) : session_(session) {}

  // Reads all records, and mends those of streams, so that Find knows each stream that has events.
  // FailedPrecondition: a newer muster wrote the store.
  absl::Status Read();
  // Null: no stream has such a partition.
  PartitionFacts* Find(const PartitionId& id);
  // In order.
  absl::Status ForEachPartition(absl::FunctionRef<absl::Status(PartitionFacts*)> visit);
  // Reports a record that belongs to nothing; a repair takes it away.
  absl::Status RemoveDamaged(size_t family, absl::string_view kind, absl::string_view key,
                             absl::string_view value, absl::string_view why);
  // Mends the records of partitions, whose events have been read, and of the store.
  absl::Status Finish();

 private:
  struct Damaged {
    std::string key;
    std::string value;
  };

  absl::Status ReadRecord(absl::string_view key, absl::string_view value);
  absl::Status ReadStore(absl::string_view value);
  absl::Status ReadStream(absl::string_view key, absl::string_view value);
  absl::Status ReadPartition(absl::string_view key, absl::string_view value);
  void AddStream(const std::string& name, const StreamRecord& record);
  // The numbers that events have and no stream record does, and how many partitions each had.
  absl::StatusOr<std::map<uint64_t, int>> FindOrphans();
  absl::StatusOr<int> PartitionsOf(uint64_t number) const;
  // Whether one of the stream's events is sound, and not merely a key that makes no sense.
  bool HasSoundEvent(uint64_t number) const;
  absl::Status MendStreams();
  absl::Status Adopt(const std::string& name, uint64_t number, int partitions,
                     const std::optional<Damaged>& damaged);
  // Partition records of streams that are not there, and those of streams that are.
  absl::Status SortPartitionRecords();
  absl::Status MendPartition(PartitionFacts* facts);
  absl::Status MendStore();

  muster::rocksdb::RepairSession* const session_;  // not owned
  std::optional<std::string> store_;               // as it is stored
  std::optional<StoreRecord> sound_store_;
  std::set<std::string> names_;
  std::set<uint64_t> numbers_;
  std::vector<Damaged> damaged_streams_;
  std::vector<Damaged> partition_records_;
  std::map<std::pair<uint64_t, uint32_t>, PartitionFacts> partitions_;
};

}  // namespace muster::stream::rocksdb
