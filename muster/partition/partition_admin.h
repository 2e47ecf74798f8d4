// SPDX-License-Identifier: Apache-2.0

// PartitionAdmin: what an administrator sees of the groups of a mesh, and changes. It is no member:
// it writes wishes into the records, and the members carry them out in their next cycles by the
// protocol that they move partitions by anyway. So a partition never has two owners for it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/partition/group_registry.h"
#include "muster/partition/records.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::partition {

struct GroupState {
  std::string group;
  int partitions = 0;                // 0: none of its members has said
  std::vector<std::string> members;  // sorted; one that died stays for up to three leases
};

struct PartitionState {
  int partition = 0;
  Ownership record;
  std::optional<Checkpoint> checkpoint;  // nullopt: its work has never begun
};

// Thread-safe. Errors of the store are passed on. A change of a record takes two requests, and at
// most kMaxAttempts times as many where others write at the same time; Aborted beyond that.
class PartitionAdmin {
 public:
  static constexpr int kMaxAttempts = 8;

  // `store` is not owned.
  explicit PartitionAdmin(sync::OptimisticSyncStore* store);

  // The names of all groups, sorted.
  absl::StatusOr<std::vector<std::string>> Groups();
  // NotFound: no member has ever joined it, nor was it introduced. FailedPrecondition: an earlier
  // muster made it (records.h); it can only be forgotten.
  absl::StatusOr<GroupState> Describe(absl::string_view group);
  // Partitions `first` to `first + count - 1`, as far as there are such; a request for
  // each, and one for each page.
  absl::StatusOr<std::vector<PartitionState>> List(const GroupState& group, int first, int count);

  // Makes `group` known before its first member joins, as who sets a checkpoint of it does, so that
  // it is listed, and can be forgotten with what was set. Fine if it is known.
  // ResourceExhausted: there are kMaxGroups.
  absl::Status Introduce(absl::string_view group, int partitions);

  // Pins `partition` to `member`: its owner hands it over, and it stays there while `member` lives,
  // until it is moved again or Rebalance is called. NotFound: no such group, partition or member.
  absl::Status Move(absl::string_view group, int partition, absl::string_view member);
  // Removes all pins, so that the members spread the partitions evenly. Returns how many there
  // were.
  absl::StatusOr<int> Rebalance(absl::string_view group);
  // When each member has said last that it lives, as the version of its record, which grows;
  // kAbsent: it has no record. NotFound: no such group.
  using Presences = std::map<std::string, uint64_t>;
  absl::StatusOr<Presences> PresencesIn(absl::string_view group);
  // Removes all records of a group that is not needed any more, also its checkpoints and epochs.
  // FailedPrecondition: it has members. A member of `dead`, which the caller has read longer ago
  // than a member lives without a word, is none if it has not said since then that it lives.
  // NotFound: no such group.
  absl::Status Forget(absl::string_view group, const Presences& dead = {});

 private:
  // Of a page, from begin to before end.
  struct Rows {
    int begin = 0;
    int end = 0;
  };

  // Of a group of an earlier muster.
  absl::StatusOr<GroupState> DescribeEarlier(absl::string_view group);
  // Pins the rows to `member`; empty: to none. Returns how many that changes.
  absl::StatusOr<int> Pin(absl::string_view group, int page, const Rows& rows,
                          absl::string_view member);
  // Removes the records of those members of `state` that are dead.
  absl::Status RemoveDead(const Presences& dead, GroupState* state);
  absl::Status Remove(const std::string& key);

  sync::OptimisticSyncStore* const store_;  // not owned
  GroupRegistry registry_;
};

}  // namespace muster::partition
