// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/group_registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/v1/partition_record.pb.h"

namespace muster::partition {
namespace {

constexpr char kGroupsKey[] = "partition/groups";

absl::StatusOr<std::vector<std::string>> DecodeGroups(const sync::VersionedData& stored) {
  v1::PartitionGroups record;
  std::vector<std::string> groups;
  if (record.ParseFromString(stored.data)) {
    groups.assign(record.groups().begin(), record.groups().end());
    if (std::is_sorted(groups.begin(), groups.end())) return groups;
  }
  return absl::DataLossError(absl::StrCat(kGroupsKey, ": the record makes no sense"));
}

std::string EncodeGroups(const std::vector<std::string>& groups) {
  v1::PartitionGroups record;
  for (const std::string& group : groups) record.add_groups(group);
  return record.SerializeAsString();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> GroupRegistry::List() {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(kGroupsKey));
  return DecodeGroups(stored);
}

absl::Status GroupRegistry::Note(absl::string_view group) { return Change(group, true); }

absl::Status GroupRegistry::Remove(absl::string_view group) { return Change(group, false); }

absl::Status GroupRegistry::Change(absl::string_view group, bool add) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(kGroupsKey));
    MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> groups, DecodeGroups(stored));
    const auto at = std::lower_bound(groups.begin(), groups.end(), group);
    const bool there = at != groups.end() && *at == group;
    if (there == add) return absl::OkStatus();
    if (add && groups.size() >= kMaxGroups) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", kMaxGroups, " groups of partitions; forget one"));
    }
    add ? static_cast<void>(groups.insert(at, std::string(group)))
        : static_cast<void>(groups.erase(at));
    // After an unknown outcome the next attempt, or the next member, finds what is there.
    MUSTER_ASSIGN_OR_RETURN(const bool written,
                            store_->TryWrite(kGroupsKey, EncodeGroups(groups), stored.version));
    if (written) return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat(kGroupsKey, ": others were first ", kMaxAttempts, " times"));
}

}  // namespace muster::partition
