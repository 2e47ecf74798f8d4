// SPDX-License-Identifier: Apache-2.0

// The records that the members of a group share, and the requests for them. A request is plain
// data: MemberProtocol makes it, SyncRecords carries it out on a store, and a simulator on a map.
//
//   partition/<group>/owners/<page>            PartitionOwners: of kPageRows partitions
//   partition/<group>/members                  PartitionGroup
//   partition/<group>/member/<member>          PartitionPresence
//   partition/<group>/checkpoint/<partition>   PartitionCheckpoint (checkpoint_store.h)
//   partition/groups                           PartitionGroups (group_registry.h)
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/partition/options.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::partition {

// Who owns a partition.
//
//   free ── claim ──► owned ── ask ──► wanted ── grant ──► granted ── release ──► reserved ──┐
//    ▲                │ ▲                │                    │                              │
//    │                │ └──── refuse ────┘                    │ after the grace     claim by │
//    └── release, ────┘                                       └──► owned by wanted_by ◄──────┘
//        or lease out
//
// Each claim takes the next epoch. An administrator may pin a partition in any state: its owner
// grants it to that member, and no other takes it while that member lives (partition_admin.h).
struct Ownership {
  std::string owner = "";      // empty: no member
  int64_t epoch = 0;           // 0: the partition had no owner yet
  int64_t renewal = 0;         // grows with each write of the owner
  std::string wanted_by = "";  // empty: no member
  bool granted = false;
  std::string pinned_to = "";     // empty: no member
  int64_t claimed_at_millis = 0;  // of the owner's wall clock, for people to read; 0: unknown

  auto operator<=>(const Ownership&) const = default;
};

// Which record a request is about.
struct RecordName {
  enum class Kind { kOwners, kMembers, kPresence };

  Kind kind = Kind::kOwners;
  int page = 0;             // of kOwners
  std::string member = "";  // of kPresence

  auto operator<=>(const RecordName&) const = default;
};

// The content of a record; only the fields of its kind are set.
struct RecordValue {
  std::vector<Ownership> owners = {};     // of kOwners, by row; a row behind the end is empty
  std::vector<std::string> members = {};  // of kMembers, sorted
  int partitions = 0;                     // of kMembers; 0: unknown
  int64_t beat = 0;                       // of kPresence

  auto operator<=>(const RecordValue&) const = default;
};

struct RecordRequest {
  enum class Verb { kRead, kWrite, kDelete };

  Verb verb = Verb::kRead;
  RecordName name = {};
  RecordValue value = {};            // of kWrite
  uint64_t version = sync::kAbsent;  // of kWrite and kDelete: the version that they replace

  auto operator<=>(const RecordRequest&) const = default;
};

struct RecordReply {
  absl::Status status = {};          // an error: the outcome is unknown
  bool done = true;                  // of kWrite and kDelete; false: another writer was first
  RecordValue value = {};            // of kRead
  uint64_t version = sync::kAbsent;  // of kRead
  uint64_t instance = 0;             // of kRead of a presence: the process that wrote it
};

// The row of a page's owners; an empty one behind the end.
const Ownership& RowOf(const std::vector<Ownership>& owners, int row);
// Changes the row, and lengthens the page to it.
void SetRow(std::vector<Ownership>* owners, int row, Ownership ownership);
// How many pages `partitions` take.
int PagesOf(int partitions, int page_rows = kPageRows);

// The sync key of a record.
std::string KeyOf(absl::string_view group, const RecordName& name);
std::string CheckpointKey(absl::string_view group, int partition);

// The stored form; version 1 is protobuf (partition_record.proto). To change it, add fields.
std::string EncodeRecord(RecordName::Kind kind, const RecordValue& value, uint64_t instance = 0);
// DataLoss when `data` is no such record or makes no sense. FailedPrecondition: it is kMembers of
// an earlier muster, which had a record for each partition, `partition/<group>/owner/<partition>`.
absl::StatusOr<RecordValue> DecodeRecord(RecordName::Kind kind, absl::string_view data);
// The members of a group of such a muster. DataLoss: as DecodeRecord.
absl::StatusOr<RecordValue> DecodeEarlierMembers(absl::string_view data);
// The key of its record of a partition.
std::string EarlierOwnerKey(absl::string_view group, int partition);

// Carries out requests on a sync store. Thread-safe.
class SyncRecords {
 public:
  // `store` is not owned. `instance` goes into each presence that is written.
  SyncRecords(sync::OptimisticSyncStore* store, absl::string_view group, uint64_t instance = 0);

  // Blocks as long as the store does. A corrupt record is an error that names its key.
  RecordReply CarryOut(const RecordRequest& request);

 private:
  RecordReply Read(const RecordRequest& request, const std::string& key);

  sync::OptimisticSyncStore* const store_;  // not owned
  const std::string group_;
  const uint64_t instance_;
};

}  // namespace muster::partition
