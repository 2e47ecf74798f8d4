// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/observations.h"

#include <algorithm>
#include <set>

namespace muster::partition {
namespace {

// An entry goes only long after its member counts as dead: a member that merely paused comes back
// to find its entry, and has nothing to write.
constexpr int kLeasesBeforeRemoval = 3;

}  // namespace

Observations::Observations(const MemberOptions& options)
    : self_(options.member),
      predecessors_(options.predecessors),
      lease_(options.lease),
      grace_(options.grace),
      partitions_(static_cast<size_t>(options.partitions)) {}

void Observations::SeeOwnership(int partition, const Ownership& record, absl::Duration now) {
  Seen& seen = partitions_[static_cast<size_t>(partition)];
  const bool written =
      !seen.known || record.epoch != seen.record.epoch || record.renewal != seen.record.renewal;
  if (written) {
    seen.since = now;
    const auto owner = members_.find(record.owner);
    if (owner != members_.end()) owner->second.last_sign = now;
  }
  seen.record = record;
  seen.known = true;
  seen.highest_epoch = std::max(seen.highest_epoch, record.epoch);
}

void Observations::SeeMembers(const std::vector<std::string>& members, absl::Duration now) {
  const std::set<std::string> listed(members.begin(), members.end());
  std::erase_if(members_, [&](const auto& entry) { return !listed.contains(entry.first); });
  for (const std::string& member : members) members_.try_emplace(member, Member{.last_sign = now});
}

// The first beat that is read proves nothing: its member may have died long ago. So may one that
// has owned partitions since its beat was last read, which was then not looked at.
void Observations::SeeBeat(const std::string& member, int64_t beat, absl::Duration now) {
  const auto it = members_.find(member);
  if (it == members_.end()) return;
  Member& seen = it->second;
  const bool compares = seen.beat_known && now - seen.beat_read < lease_;
  if (compares && seen.beat != beat) seen.last_sign = now;
  seen.beat_known = true;
  seen.beat = beat;
  seen.beat_read = now;
}

const Ownership& Observations::record(int partition) const { return At(partition).record; }

int64_t Observations::highest_epoch(int partition) const { return At(partition).highest_epoch; }

std::vector<std::string> Observations::MembersToLookAt() const {
  std::set<std::string> owners = {self_};
  for (const Seen& seen : partitions_) owners.insert(seen.record.owner);
  std::vector<std::string> members;
  for (const auto& [member, _] : members_) {
    if (!owners.contains(member)) members.push_back(member);
  }
  return members;
}

std::string Observations::LongDead(absl::Duration now) const {
  for (const auto& [name, member] : members_) {
    if (name == self_) continue;
    if (IsPredecessor(name) || now - member.last_sign >= kLeasesBeforeRemoval * lease_) return name;
  }
  return "";
}

bool Observations::HasOwner(int partition, absl::Duration now) const {
  const Seen& seen = At(partition);
  return seen.known && !seen.record.owner.empty() && now - seen.since < lease_;
}

bool Observations::IsLive(const std::string& member, absl::Duration now) const {
  if (member == self_) return true;
  if (IsPredecessor(member)) return false;
  const auto it = members_.find(member);
  return it != members_.end() && now - it->second.last_sign < lease_;
}

bool Observations::IsPredecessor(const std::string& member) const {
  return std::find(predecessors_.begin(), predecessors_.end(), member) != predecessors_.end();
}

bool Observations::IsInherited(int partition) const {
  return IsPredecessor(At(partition).record.owner);
}

bool Observations::IsClaimable(int partition, bool stopped, absl::Duration now) const {
  const Seen& seen = At(partition);
  if (!seen.known || !stopped) return false;
  const Ownership& record = seen.record;
  const absl::Duration unchanged = now - seen.since;
  if (record.owner == self_ || IsInherited(partition) || unchanged >= lease_) return true;
  if (record.owner.empty()) {
    return record.wanted_by == self_ || record.pinned_to == self_ || !IsLive(record.wanted_by, now);
  }
  return record.granted && record.wanted_by == self_ && unchanged >= grace_;
}

GroupView Observations::View(absl::Duration now) const {
  GroupView view{.self = self_};
  std::set<std::string> live = {self_};
  for (const auto& [name, _] : members_) {
    if (IsLive(name, now)) live.insert(name);
  }
  view.live.assign(live.begin(), live.end());
  view.partitions.reserve(partitions_.size());
  for (const Seen& seen : partitions_) {
    view.partitions.push_back({.record = seen.record, .known = seen.known});
  }
  return view;
}

}  // namespace muster::partition
