// SPDX-License-Identifier: Apache-2.0

// What a member writes over what it has read: the part of MemberProtocol that changes records.
#include <algorithm>
#include <utility>

#include "muster/partition/member_protocol.h"

namespace muster::partition {

std::optional<RecordValue> MemberProtocol::Change(Step* step, const RecordReply& read,
                                                  absl::Duration now) {
  switch (step->purpose) {
    case Purpose::kLook:
      return std::nullopt;
    case Purpose::kBeat:
      // If another process has this member's name, a further beat would stop that one, too.
      if (stopping_) return std::nullopt;
      return RecordValue{.beat = read.value.beat + 1};
    case Purpose::kForget:
      if (read.version == sync::kAbsent) return std::nullopt;
      return read.value;
    case Purpose::kJoin:
    case Purpose::kLeave:
      return ChangeMembers(*step, read, now);
    default:
      return ChangeOwners(step, read, now);
  }
}

std::optional<RecordValue> MemberProtocol::ChangeOwners(Step* step, const RecordReply& read,
                                                        absl::Duration now) {
  RecordValue value{.owners = read.value.owners};
  step->changed.clear();
  const auto change = [&](int p) {
    std::optional<Ownership> changed =
        ChangeOwnership(step->purpose, p, RowOf(read.value.owners, RowIn(p)), now);
    if (!changed.has_value()) return;
    SetRow(&value.owners, RowIn(p), *std::move(changed));
    step->changed.push_back(p);
  };
  if (step->partitions.empty()) {
    for (int p = FirstOf(step->name.page); p < EndOf(step->name.page); ++p) change(p);
  } else {
    for (const int p : step->partitions) change(p);
  }
  if (step->changed.empty()) return std::nullopt;
  return value;
}

Ownership MemberProtocol::Claimed(int partition, const Ownership& record) const {
  // A store that lost the record must not bring an old epoch back.
  const int64_t before = std::max(record.epoch, seen_.highest_epoch(partition));
  const int64_t epoch = std::max(before + 1, options_.least_epoch);
  return {.owner = options_.member,
          .epoch = epoch,
          .renewal = record.renewal + 1,
          .pinned_to = record.pinned_to,
          .claimed_at_millis = wall_millis_};
}

std::optional<Ownership> MemberProtocol::ChangeOwnership(Purpose purpose, int p, Ownership record,
                                                         absl::Duration now) const {
  const Work& work = At(p);
  const bool mine = record.owner == options_.member && record.epoch == work.epoch;
  switch (purpose) {
    case Purpose::kClaim:
      if (stopping_ || !seen_.IsClaimable(p, work.state == Work::State::kNone, now)) break;
      return Claimed(p, record);
    case Purpose::kAsk:
      if (record.owner.empty() || record.owner == options_.member || record.granted) break;
      if (seen_.IsLive(record.wanted_by, now) || seen_.IsLive(record.pinned_to, now)) break;
      record.wanted_by = options_.member;
      return record;
    case Purpose::kRefuse:
      if (!mine || record.granted || record.wanted_by.empty()) break;
      record.wanted_by.clear();
      return record;
    case Purpose::kGrant:
      // It drains already if another writer of the page was first.
      if (!mine || (work.state != Work::State::kHeld && work.state != Work::State::kDraining))
        break;
      if (seen_.IsLive(record.pinned_to, now)) record.wanted_by = record.pinned_to;
      if (record.wanted_by.empty() || record.wanted_by == options_.member) break;
      record.granted = true;
      ++record.renewal;
      return record;
    case Purpose::kRenew:
      if (!mine || work.state != Work::State::kHeld) break;
      ++record.renewal;
      return record;
    case Purpose::kRelease:
      if (!mine || work.state != Work::State::kReleasing) break;
      record.owner.clear();
      record.granted = false;
      ++record.renewal;
      return record;
    default:
      break;
  }
  return std::nullopt;
}

std::optional<RecordValue> MemberProtocol::ChangeMembers(const Step& step, const RecordReply& read,
                                                         absl::Duration now) {
  std::vector<std::string> members = read.value.members;
  const auto self = std::lower_bound(members.begin(), members.end(), options_.member);
  const bool listed = self != members.end() && *self == options_.member;
  if (step.purpose == Purpose::kLeave) {
    if (!listed) return std::nullopt;
    members.erase(self);
    return RecordValue{.members = std::move(members), .partitions = read.value.partitions};
  }
  const std::string dead = seen_.LongDead(now);
  const bool full = members.size() >= static_cast<size_t>(kMaxMembers);
  // The first member says how many partitions there are, and so does one that finds it unsaid.
  const bool says = members.empty() || read.value.partitions == 0;
  const int partitions = says ? options_.partitions : read.value.partitions;
  if (!listed && !full) members.insert(self, options_.member);
  if (!dead.empty()) std::erase(members, dead);
  if (members == read.value.members && partitions == read.value.partitions) return std::nullopt;
  return RecordValue{.members = std::move(members), .partitions = partitions};
}

}  // namespace muster::partition
