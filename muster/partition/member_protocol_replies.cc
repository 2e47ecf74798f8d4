// SPDX-License-Identifier: Apache-2.0

// How a member takes the replies to its requests, and what it learns of its partitions by them.
#include <algorithm>
#include <utility>

#include "muster/base/check.h"
#include "muster/partition/member_protocol.h"

namespace muster::partition {
namespace {

// Another writer touched the record in between; once more is left to the next cycle. The members
// that own partitions of a page all write to it, so races are common where they are many.
constexpr int kMaxWrites = 8;

// Each race for the list of members that a newcomer loses lets another one in: after so many, all
// are. Those that start together then know one another before they share.
constexpr int kMaxJoinWrites = kMaxMembers;

}  // namespace

void MemberProtocol::OnReply(const RecordReply& reply, absl::Duration now) {
  MUSTER_CHECK(step_.has_value(), "a reply without a request");
  Step step = *std::exchange(step_, std::nullopt);
  if (step.stage == Stage::kWrite) {
    if (reply.status.ok() && reply.done) return OnApplied(step, now);
    // Either another writer was first, or the outcome is unknown: the record tells.
    step.stage = Stage::kReadBack;
    step_ = std::move(step);
    return;
  }
  if (!reply.status.ok()) return GiveUp(step);
  Observe(step.name, reply, now);
  step.stage == Stage::kRead ? PrepareWrite(std::move(step), reply, now)
                             : OnReadBack(std::move(step), reply, now);
}

void MemberProtocol::OnReadBack(Step step, const RecordReply& reply, absl::Duration now) {
  if (IsApplied(step, reply)) return OnApplied(step, now);
  // What others have claimed meanwhile may change what is this member's to take.
  const bool once = step.purpose == Purpose::kClaim || step.purpose == Purpose::kAsk;
  const int most = step.purpose == Purpose::kJoin && !listed_ ? kMaxJoinWrites : kMaxWrites;
  if (once || step.writes >= most) return;
  PrepareWrite(std::move(step), reply, now);
}

// Others may have written other rows of the page since.
bool MemberProtocol::IsApplied(const Step& step, const RecordReply& reply) const {
  const bool gone = reply.version == sync::kAbsent;
  if (step.purpose == Purpose::kForget || gone) return gone == (step.purpose == Purpose::kForget);
  if (step.name.kind != RecordName::Kind::kOwners) return reply.value == step.intended;
  return std::all_of(step.changed.begin(), step.changed.end(), [&](int p) {
    return RowOf(reply.value.owners, RowIn(p)) == RowOf(step.intended.owners, RowIn(p));
  });
}

void MemberProtocol::PrepareWrite(Step step, const RecordReply& read, absl::Duration now) {
  std::optional<RecordValue> change = Change(&step, read, now);
  if (!change.has_value()) return;
  // The grace begins before other members can see the grant. The work drains even if the write
  // fails: a write whose failure is reported may still be carried out later.
  if (step.purpose == Purpose::kGrant) {
    for (const int p : step.changed) Drain(p, now);
  }
  step.taken.clear();
  for (const int p : step.purpose == Purpose::kClaim ? step.changed : std::vector<int>()) {
    const std::string& before = RowOf(read.value.owners, RowIn(p)).owner;
    if (!before.empty() && before != options_.member) step.taken.push_back(p);
  }
  step.intended = *std::move(change);
  step.version = read.version;
  step.stage = Stage::kWrite;
  step_ = std::move(step);
}

void MemberProtocol::Observe(const RecordName& name, const RecordReply& reply, absl::Duration now) {
  switch (name.kind) {
    case RecordName::Kind::kOwners:
      for (int p = FirstOf(name.page); p < EndOf(name.page); ++p) {
        const Ownership& record = RowOf(reply.value.owners, RowIn(p));
        seen_.SeeOwnership(p, record, now);
        NoticeLoss(p, record);
      }
      return;
    case RecordName::Kind::kMembers:
      seen_.SeeMembers(reply.value.members, now);
      listed_ = std::binary_search(reply.value.members.begin(), reply.value.members.end(),
                                   options_.member);
      return;
    case RecordName::Kind::kPresence:
      if (reply.version != sync::kAbsent) seen_.SeeBeat(name.member, reply.value.beat, now);
      return;
  }
}

void MemberProtocol::OnApplied(const Step& step, absl::Duration now) {
  if (step.name.kind == RecordName::Kind::kOwners) return OnOwnersApplied(step, now);
  if (step.name.kind != RecordName::Kind::kMembers) return;
  const std::string dead = seen_.LongDead(now);
  seen_.SeeMembers(step.intended.members, now);
  listed_ = step.purpose == Purpose::kJoin;
  const bool removed = !dead.empty() && seen_.LongDead(now) != dead;
  if (!removed || stopping_) return;
  plan_.push_back(
      {.purpose = Purpose::kForget, .name = {.kind = RecordName::Kind::kPresence, .member = dead}});
}

void MemberProtocol::OnOwnersApplied(const Step& step, absl::Duration now) {
  for (const int p : step.changed) {
    const Ownership& record = RowOf(step.intended.owners, RowIn(p));
    seen_.SeeOwnership(p, record, now);
    if (step.purpose == Purpose::kClaim) Hold(step, p, now);
    if (step.purpose == Purpose::kRenew) Extend(p, step.write_began);
    if (step.purpose == Purpose::kRelease) At(p) = Work();
  }
}

// An action that failed is not tried again in this cycle. A member that stops does not wait for a
// store that does not answer: what it has not freed, its leases do.
void MemberProtocol::GiveUp(const Step& step) {
  if (stopping_) ++stop_failures_;
  const bool acts = phase_ == Phase::kAct || phase_ == Phase::kClaimDue;
  if (!acts || step.name.kind == RecordName::Kind::kPresence) return;
  plan_.clear();
  phase_ = Phase::kIdle;
}

void MemberProtocol::NoticeLoss(int partition, const Ownership& record) {
  Work& work = At(partition);
  if (record.owner == options_.member && record.epoch == work.epoch) return;
  switch (work.state) {
    case Work::State::kNone:
      return;
    case Work::State::kHeld:
    case Work::State::kDraining:
      return Revoke(partition, false);
    case Work::State::kStopping:
      work.release = false;
      return;
    case Work::State::kReleasing:
      work = Work();
      return;
  }
}

void MemberProtocol::Hold(const Step& step, int partition, absl::Duration now) {
  Work& work = At(partition);
  const int64_t epoch = RowOf(step.intended.owners, RowIn(partition)).epoch;
  const absl::Duration began = step.write_began;
  MUSTER_CHECK(work.state == Work::State::kNone && epoch > work.epoch, "partition ", partition,
               ", epoch ", epoch, " after ", work.epoch);
  const absl::Duration until = began + OwnShare(options_.lease);
  // The write took as long as the lease: the record names this member, and is claimed again.
  if (now >= until) return;
  work = {.state = Work::State::kHeld, .epoch = epoch, .until = until, .tried = began};
  const bool taken = std::find(step.taken.begin(), step.taken.end(), partition) != step.taken.end();
  events_.push_back({WorkEvent::Kind::kAssigned, partition, epoch, taken});
  if (stopping_) Drain(partition, now);
}

void MemberProtocol::Extend(int partition, absl::Duration began) {
  Work& work = At(partition);
  if (work.state != Work::State::kHeld) return;
  work.until = std::max(work.until, began + OwnShare(options_.lease));
}

void MemberProtocol::Drain(int partition, absl::Duration now) {
  Work& work = At(partition);
  if (work.state != Work::State::kHeld) return;
  work.state = Work::State::kDraining;
  work.until = std::min(work.until, now + OwnShare(options_.grace));
  events_.push_back({WorkEvent::Kind::kDraining, partition, work.epoch});
}

void MemberProtocol::Revoke(int partition, bool release) {
  Work& work = At(partition);
  work.state = Work::State::kStopping;
  work.release = release;
  events_.push_back({WorkEvent::Kind::kRevoked, partition, work.epoch, !release});
}

void MemberProtocol::Drained(int partition, int64_t epoch) {
  const Work& work = At(partition);
  if (work.state == Work::State::kDraining && work.epoch == epoch) Revoke(partition, true);
}

void MemberProtocol::Stopped(int partition, int64_t epoch) {
  Work& work = At(partition);
  if (work.state != Work::State::kStopping || work.epoch != epoch) return;
  work.state = work.release ? Work::State::kReleasing : Work::State::kNone;
  work.release_due = work.release;
}

void MemberProtocol::Expire(absl::Duration now) {
  for (int p = 0; p < options_.partitions; ++p) {
    const Work& work = At(p);
    const bool draining = work.state == Work::State::kDraining;
    if ((draining || work.state == Work::State::kHeld) && now >= work.until) Revoke(p, draining);
  }
}

absl::Duration MemberProtocol::NextDeadline() const {
  absl::Duration deadline = absl::InfiniteDuration();
  for (const Work& work : works_) {
    if (work.state == Work::State::kHeld || work.state == Work::State::kDraining) {
      deadline = std::min(deadline, work.until);
    }
  }
  return deadline;
}

std::string MemberProtocol::OwnerOf(int partition) const {
  if (partition < 0 || partition >= options_.partitions) return "";
  return seen_.record(partition).owner;
}

int MemberProtocol::Owned(absl::Duration now) const {
  int owned = 0;
  for (int p = 0; p < options_.partitions; ++p) owned += Held(p, now).has_value() ? 1 : 0;
  return owned;
}

int MemberProtocol::Unowned(absl::Duration now) const {
  int unowned = 0;
  for (int p = 0; p < options_.partitions; ++p) unowned += seen_.HasOwner(p, now) ? 0 : 1;
  return unowned;
}

bool MemberProtocol::wants_cycle_soon() const { return cycles_ < 2 || awaits_hand_over(); }

bool MemberProtocol::awaits_hand_over() const {
  for (int p = 0; p < options_.partitions; ++p) {
    if (seen_.record(p).wanted_by == options_.member) return true;
  }
  return false;
}

std::vector<WorkEvent> MemberProtocol::TakeEvents() { return std::exchange(events_, {}); }

std::optional<Holding> MemberProtocol::Held(int partition, absl::Duration now) const {
  if (partition < 0 || partition >= options_.partitions) return std::nullopt;
  const Work& work = At(partition);
  const bool works = work.state == Work::State::kHeld || work.state == Work::State::kDraining;
  if (!works || now >= work.until) return std::nullopt;
  return Holding{work.epoch, work.until};
}

}  // namespace muster::partition
