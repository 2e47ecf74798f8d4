// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/partition_member.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/base/log.h"
#include "muster/base/status.h"

namespace muster::partition {

absl::StatusOr<std::unique_ptr<PartitionMember>> PartitionMember::Start(
    const MemberOptions& options, sync::OptimisticSyncStore* store, PartitionWork* work,
    base::Clock* clock, telemetry::Registry* metrics, uint64_t seed) {
  MUSTER_RETURN_IF_ERROR(Validate(options));
  std::unique_ptr<PartitionMember> member(
      new PartitionMember(options, store, work, clock, metrics, seed));
  base::MutexLock lock(&member->stop_mu_);
  member->store_thread_ = std::thread([m = member.get()] { m->RunCycles(); });
  member->work_thread_ = std::thread([m = member.get()] { m->RunWork(); });
  return member;
}

PartitionMember::PartitionMember(const MemberOptions& options, sync::OptimisticSyncStore* store,
                                 PartitionWork* work, base::Clock* clock,
                                 telemetry::Registry* metrics, uint64_t seed)
    : options_(options),
      instance_(base::RandomSeed() | 1),
      work_(work),
      clock_(clock),
      records_(store, options.group, instance_),
      registry_(store),
      protocol_(options, seed),
      uniform_(base::SeededUniform(seed)),
      cycle_began_(clock->Monotonic() - options.interval),
      looked_(clock->Monotonic()),
      metrics_(metrics, options.group, [this] { return Look(); }) {}

PartitionMember::~PartitionMember() { Stop(); }

void PartitionMember::Stop() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    protocol_.BeginStop(clock_->Monotonic());
    store_wake_.NotifyAll();
    work_wake_.NotifyAll();
  }
  base::MutexLock lock(&stop_mu_);
  if (store_thread_.joinable()) store_thread_.join();
  if (work_thread_.joinable()) work_thread_.join();
}

std::optional<Holding> PartitionMember::Held(int partition) const {
  base::MutexLock lock(&mu_);
  return protocol_.Held(partition, clock_->Monotonic());
}

void PartitionMember::Drained(int partition, int64_t epoch) {
  base::MutexLock lock(&mu_);
  protocol_.Drained(partition, epoch);
  work_wake_.NotifyAll();
}

std::string PartitionMember::OwnerOf(int partition) const {
  base::MutexLock lock(&mu_);
  return protocol_.OwnerOf(partition);
}

MemberCounts PartitionMember::counts() const {
  base::MutexLock lock(&mu_);
  return counts_;
}

std::optional<GroupSight> PartitionMember::Look() const {
  base::MutexLock lock(&mu_);
  if (ended_) return std::nullopt;
  const absl::Duration now = clock_->Monotonic();
  return GroupSight{protocol_.Owned(now), protocol_.Unowned(now)};
}

void PartitionMember::RunCycles() {
  bool noted = false;
  while (const std::optional<RecordRequest> request = AwaitRequest()) {
    const RecordReply reply = records_.CarryOut(*request);
    const bool begins = request->verb == RecordRequest::Verb::kRead && request->name == OwnName();
    // Before the first beat, and when the store has lost the last one, and maybe the groups, too.
    if (begins && reply.status.ok() && reply.version == sync::kAbsent) noted = false;
    // With each beat, which begins a cycle, until it is done.
    if (begins && !noted) noted = NoteGroup();
    NotePresence(*request, reply);
    base::MutexLock lock(&mu_);
    protocol_.OnReply(reply, clock_->Monotonic());
    CountLocked(reply);
  }
  base::MutexLock lock(&mu_);
  ended_ = true;
  work_wake_.NotifyAll();
}

RecordName PartitionMember::OwnName() const {
  return {.kind = RecordName::Kind::kPresence, .member = options_.member};
}

bool PartitionMember::NoteGroup() {
  const absl::Status noted = registry_.Note(options_.group);
  if (!absl::IsResourceExhausted(noted)) return noted.ok();
  base::Log(base::kWarning, "a group of partitions is not listed",
            {{"group", options_.group}, {"why", noted.ToString()}});
  return true;
}

std::optional<RecordRequest> PartitionMember::AwaitRequest() {
  base::MutexLock lock(&mu_);
  for (;;) {
    const absl::Duration now = clock_->Monotonic();
    std::optional<RecordRequest> request = protocol_.Next(now);
    // The last reply may have brought events or an earlier deadline.
    work_wake_.NotifyAll();
    if (request.has_value() || protocol_.has_left()) return request;
    const absl::Duration next_cycle = cycle_began_ + NextCycleAfterLocked();
    if (!stopping_ && now >= next_cycle) {
      BeginCycleLocked(now);
      continue;
    }
    const absl::Duration next_look = NextLookLocked();
    if (!stopping_ && now >= next_look) {
      looked_ = now;
      protocol_.BeginLook(now);
      continue;
    }
    clock_->WaitUntil(&store_wake_, &mu_,
                      stopping_ ? absl::InfiniteDuration() : std::min(next_cycle, next_look));
  }
}

absl::Duration PartitionMember::NextLookLocked() const {
  if (!protocol_.awaits_hand_over()) return absl::InfiniteDuration();
  return looked_ + options_.interval * kHandOverLook;
}

absl::Duration PartitionMember::NextCycleAfterLocked() const {
  return options_.interval * (protocol_.wants_cycle_soon() ? kSoonCycle : cycle_share_);
}

void PartitionMember::BeginCycleLocked(absl::Duration now) {
  cycle_began_ = now;
  cycle_share_ = kShortestCycle + uniform_() * (kLongestCycle - kShortestCycle);
  protocol_.BeginCycle(now, clock_->Now());
  if (counts_.cycles > 0) metrics_.NoteCycle(counts_.failures > failures_before_);
  failures_before_ = counts_.failures;
  ++counts_.cycles;
}

void PartitionMember::NotePresence(const RecordRequest& request, const RecordReply& reply) {
  if (request.name != OwnName() || !reply.status.ok()) return;
  base::MutexLock lock(&mu_);
  if (request.verb == RecordRequest::Verb::kWrite && reply.done) present_ = true;
  const bool by_another = reply.instance != 0 && reply.instance != instance_;
  // What is found before the first own presence is an earlier process's.
  if (!present_ || stopping_ || !by_another) return;
  base::Log(base::kError, "another process has this member's name; this one stops",
            {{"group", options_.group}, {"member", options_.member}});
  stopping_ = displaced_ = true;
  protocol_.BeginStop(clock_->Monotonic(), /*stays_listed=*/true);
  work_wake_.NotifyAll();
}

void PartitionMember::CountLocked(const RecordReply& reply) {
  metrics_.NoteReply(reply);
  ++counts_.requests;
  if (reply.status.ok() && !reply.done) ++counts_.races;
  if (reply.status.ok()) return;
  // Only the first of failures alike is logged: a store that is down would fill the log.
  if (counts_.last_failure.code() != reply.status.code()) {
    base::Log(base::kWarning, "a partition member cannot reach its records",
              {{"group", options_.group}, {"why", reply.status.ToString()}});
  }
  ++counts_.failures;
  counts_.last_failure = reply.status;
}

void PartitionMember::RunWork() {
  for (;;) {
    const std::vector<WorkEvent> events = AwaitEvents();
    for (const WorkEvent& event : events) Call(event);
    if (TakeDisplaced()) {
      work_->OnDisplaced();
    } else if (events.empty()) {
      return;
    }
  }
}

std::vector<WorkEvent> PartitionMember::AwaitEvents() {
  base::MutexLock lock(&mu_);
  for (;;) {
    protocol_.Expire(clock_->Monotonic());
    std::vector<WorkEvent> events = protocol_.TakeEvents();
    for (const WorkEvent& event : events) metrics_.NoteEvent(event);
    if (!events.empty() || displaced_ || ended_) return events;
    clock_->WaitUntil(&work_wake_, &mu_, protocol_.NextDeadline());
  }
}

bool PartitionMember::TakeDisplaced() {
  base::MutexLock lock(&mu_);
  return std::exchange(displaced_, false);
}

void PartitionMember::Call(const WorkEvent& event) {
  switch (event.kind) {
    case WorkEvent::Kind::kAssigned:
      return work_->OnAssigned(event.partition, event.epoch);
    case WorkEvent::Kind::kDraining: {
      absl::Duration deadline;
      {
        base::MutexLock lock(&mu_);
        const std::optional<Holding> held = protocol_.Held(event.partition, clock_->Monotonic());
        deadline = held.has_value() ? held->until : clock_->Monotonic();
      }
      return work_->OnDraining(event.partition, event.epoch, deadline);
    }
    case WorkEvent::Kind::kRevoked:
      break;
  }
  work_->OnRevoked(event.partition, event.epoch);
  base::MutexLock lock(&mu_);
  protocol_.Stopped(event.partition, event.epoch);
  store_wake_.NotifyAll();
}

}  // namespace muster::partition
