// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/partition_admin.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::partition {
namespace {

absl::Status NoSuchGroup(absl::string_view group) {
  return absl::NotFoundError(absl::StrCat("there is no group '", group, "' of partitions"));
}

absl::Status CheckGroup(absl::string_view group) {
  const bool sound = group.size() <= kMaxGroupBytes && sync::ValidateKey(group).ok();
  return sound ? absl::OkStatus() : NoSuchGroup(group);
}

}  // namespace

PartitionAdmin::PartitionAdmin(sync::OptimisticSyncStore* store)
    : store_(store), registry_(store) {}

absl::StatusOr<std::vector<std::string>> PartitionAdmin::Groups() { return registry_.List(); }

absl::StatusOr<GroupState> PartitionAdmin::Describe(absl::string_view group) {
  MUSTER_RETURN_IF_ERROR(CheckGroup(group));
  RecordReply read =
      SyncRecords(store_, group).CarryOut({.name = {.kind = RecordName::Kind::kMembers}});
  MUSTER_RETURN_IF_ERROR(read.status);
  if (read.version == sync::kAbsent) return NoSuchGroup(group);
  return GroupState{std::string(group), read.value.partitions, std::move(read.value.members)};
}

absl::Status PartitionAdmin::Introduce(absl::string_view group, int partitions) {
  const absl::Status known = Describe(group).status();
  if (known.ok() || absl::IsFailedPrecondition(known)) return absl::OkStatus();
  if (!absl::IsNotFound(known)) return known;
  MUSTER_RETURN_IF_ERROR(registry_.Note(group));
  // If a member is first, it has written more.
  return SyncRecords(store_, group)
      .CarryOut({.verb = RecordRequest::Verb::kWrite,
                 .name = {.kind = RecordName::Kind::kMembers},
                 .value = {.partitions = partitions},
                 .version = sync::kAbsent})
      .status;
}

absl::StatusOr<GroupState> PartitionAdmin::DescribeEarlier(absl::string_view group) {
  const std::string key = KeyOf(group, {.kind = RecordName::Kind::kMembers});
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(key));
  absl::StatusOr<RecordValue> value = DecodeEarlierMembers(stored.data);
  if (!value.ok()) return base::Annotate(value.status(), key);
  return GroupState{std::string(group), value->partitions, std::move(value->members)};
}

absl::StatusOr<std::vector<PartitionState>> PartitionAdmin::List(const GroupState& group, int first,
                                                                 int count) {
  SyncRecords records(store_, group.group);
  CheckpointStore checkpoints(store_, group.group);
  std::vector<PartitionState> states;
  RecordReply page;
  const int end = first + std::min(count, group.partitions - first);
  for (int p = first; p < end; ++p) {
    if (p == first || p % kPageRows == 0) {
      page = records.CarryOut({.name = {.page = p / kPageRows}});
      MUSTER_RETURN_IF_ERROR(page.status);
    }
    MUSTER_ASSIGN_OR_RETURN(std::optional<Checkpoint> checkpoint, checkpoints.Load(p));
    states.push_back({p, RowOf(page.value.owners, p % kPageRows), checkpoint});
  }
  return states;
}

absl::Status PartitionAdmin::Move(absl::string_view group, int partition,
                                  absl::string_view member) {
  MUSTER_ASSIGN_OR_RETURN(const GroupState state, Describe(group));
  if (partition < 0 || partition >= state.partitions) {
    return absl::NotFoundError(absl::StrCat("group ", group, " has the partitions 0 to ",
                                            state.partitions - 1, ", not ", partition));
  }
  if (!std::binary_search(state.members.begin(), state.members.end(), member)) {
    return absl::NotFoundError(absl::StrCat("group ", group, " has no member '", member, "'"));
  }
  const int row = partition % kPageRows;
  return Pin(group, partition / kPageRows, {row, row + 1}, member).status();
}

absl::StatusOr<int> PartitionAdmin::Rebalance(absl::string_view group) {
  MUSTER_ASSIGN_OR_RETURN(const GroupState state, Describe(group));
  int removed = 0;
  for (int page = 0; page < PagesOf(state.partitions); ++page) {
    MUSTER_ASSIGN_OR_RETURN(const int changed, Pin(group, page, {0, kPageRows}, ""));
    removed += changed;
  }
  return removed;
}

// The renewal stays as it is: a wish does not keep a dead owner alive.
absl::StatusOr<int> PartitionAdmin::Pin(absl::string_view group, int page, const Rows& rows,
                                        absl::string_view member) {
  SyncRecords records(store_, group);
  const RecordName name{.page = page};
  int earlier = 0;  // of an attempt whose outcome was unknown to it
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    RecordReply read = records.CarryOut({.name = name});
    MUSTER_RETURN_IF_ERROR(read.status);
    const int end = member.empty() ? static_cast<int>(read.value.owners.size()) : rows.end;
    int changed = 0;
    for (int row = rows.begin; row < std::min(rows.end, end); ++row) {
      Ownership ownership = RowOf(read.value.owners, row);
      if (ownership.pinned_to == member) continue;
      ownership.pinned_to = std::string(member);
      SetRow(&read.value.owners, row, std::move(ownership));
      ++changed;
    }
    if (changed == 0) return earlier;
    earlier = changed;
    const RecordReply written = records.CarryOut({.verb = RecordRequest::Verb::kWrite,
                                                  .name = name,
                                                  .value = std::move(read.value),
                                                  .version = read.version});
    MUSTER_RETURN_IF_ERROR(written.status);
    if (written.done) return changed;
  }
  return absl::AbortedError(absl::StrCat("page ", page, " of group ", group, ": others were first ",
                                         kMaxAttempts, " times"));
}

absl::StatusOr<PartitionAdmin::Presences> PartitionAdmin::PresencesIn(absl::string_view group) {
  MUSTER_ASSIGN_OR_RETURN(const GroupState state, Describe(group));
  Presences presences;
  for (const std::string& member : state.members) {
    const RecordName name{.kind = RecordName::Kind::kPresence, .member = member};
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(KeyOf(group, name)));
    presences[member] = stored.version;
  }
  return presences;
}

absl::Status PartitionAdmin::RemoveDead(const Presences& dead, GroupState* state) {
  std::vector<std::string> alive;
  for (const std::string& member : state->members) {
    const std::string key =
        KeyOf(state->group, {.kind = RecordName::Kind::kPresence, .member = member});
    const auto found = dead.find(member);
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(key));
    bool is_dead = found != dead.end() && found->second == stored.version;
    if (is_dead && stored.version != sync::kAbsent) {
      MUSTER_ASSIGN_OR_RETURN(is_dead, store_->TryDelete(key, stored.version));
    }
    if (!is_dead) alive.push_back(member);
  }
  state->members = std::move(alive);
  return absl::OkStatus();
}

// The list of members goes last but for the name: a group that is cut short is forgotten again.
absl::Status PartitionAdmin::Forget(absl::string_view group, const Presences& dead) {
  absl::StatusOr<GroupState> state = Describe(group);
  const bool earlier = absl::IsFailedPrecondition(state.status());
  if (earlier) state = DescribeEarlier(group);
  if (absl::IsNotFound(state.status())) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> groups, Groups());
    if (!std::binary_search(groups.begin(), groups.end(), group)) return state.status();
    return registry_.Remove(group);
  }
  MUSTER_RETURN_IF_ERROR(state.status());
  MUSTER_RETURN_IF_ERROR(RemoveDead(dead, &*state));
  if (!state->members.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", group, " has members: ", state->members.front(),
        state->members.size() > 1 ? absl::StrCat(" and ", state->members.size() - 1, " more") : "",
        "; one that died is removed after three leases, if another lives"));
  }
  for (int page = 0; page < PagesOf(state->partitions); ++page) {
    MUSTER_RETURN_IF_ERROR(Remove(KeyOf(group, {.page = page})));
  }
  for (int p = 0; p < state->partitions; ++p) {
    if (earlier) MUSTER_RETURN_IF_ERROR(Remove(EarlierOwnerKey(group, p)));
    MUSTER_RETURN_IF_ERROR(Remove(CheckpointKey(group, p)));
  }
  MUSTER_RETURN_IF_ERROR(Remove(KeyOf(group, {.kind = RecordName::Kind::kMembers})));
  return registry_.Remove(group);
}

absl::Status PartitionAdmin::Remove(const std::string& key) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(key));
    if (stored.version == sync::kAbsent) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const bool removed, store_->TryDelete(key, stored.version));
    if (removed) return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat(key, ": others were first ", kMaxAttempts, " times"));
}

}  // namespace muster::partition
