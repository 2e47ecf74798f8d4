// SPDX-License-Identifier: Apache-2.0

// PartitionMember: a member of a group that shares the partitions of a queue, so that each
// partition has one owner. It runs MemberProtocol over a sync store.
//
//   class Pumps : public PartitionWork { … };
//   MUSTER_ASSIGN_OR_RETURN(auto member, PartitionMember::Start(options, store, &pumps, clock));
//   … if (auto held = member->Held(partition)) Commit(partition, held->epoch); …
//   member->Stop();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/random.h"
#include "muster/partition/group_registry.h"
#include "muster/partition/member_metrics.h"
#include "muster/partition/member_protocol.h"
#include "muster/partition/options.h"
#include "muster/partition/records.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::partition {

// The work on partitions, which the user provides. A thread of the member calls it, one call at a
// time; each call returns soon, since it holds up the calls for other partitions. It may call Held
// and Drained of the member, but not Stop.
class PartitionWork {
 public:
  virtual ~PartitionWork() = default;

  // The member owns the partition: start the work. It begins with CheckpointStore::Begin, which
  // raises the fence of its checkpoint and tells where to go on.
  virtual void OnAssigned(int partition, int64_t epoch) = 0;
  // Another member will take over, or this one stops: take nothing new, finish, checkpoint, and
  // call PartitionMember::Drained. OnRevoked follows, at `deadline` of the clock's Monotonic() at
  // the latest.
  virtual void OnDraining(int partition, int64_t epoch, absl::Duration deadline) = 0;
  // The member must not work on the partition: when this returns, nothing more is committed under
  // `epoch`. Comes once for each OnAssigned.
  virtual void OnRevoked(int partition, int64_t epoch) = 0;
  // Another process has started with this member's name. The member stops, as Stop does, and the
  // other one remains; until each has noticed, at most a cycle, both may hold a partition, of which
  // only the one with the higher epoch can save checkpoints.
  virtual void OnDisplaced() {}
};

// What a member has done so far.
struct MemberCounts {
  int64_t cycles = 0;
  int64_t requests = 0;  // to the store
  int64_t failures = 0;  // of these, with an error
  int64_t races = 0;     // of these, writes that another writer was before
  absl::Status last_failure;
};

// Thread-safe. Has two threads: one for the store, and one that calls the work, also while the
// store hangs. An owner stops before another member begins, as member_protocol.h says: Held expires
// by itself, without the store.
class PartitionMember {
 public:
  // InvalidArgument: the options. `store`, `work`, `clock` and `metrics` are not owned; `metrics`
  // may be null, and outlives the member.
  static absl::StatusOr<std::unique_ptr<PartitionMember>> Start(
      const MemberOptions& options, sync::OptimisticSyncStore* store, PartitionWork* work,
      base::Clock* clock, telemetry::Registry* metrics, uint64_t seed = base::RandomSeed());
  // Stops.
  ~PartitionMember();

  // Drains and releases all partitions, and leaves the group, so that others take over at once.
  // Takes the grace at most, and two requests to the store for each partition; gives up after a few
  // that fail. Calling it twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // The right to work on `partition`; nullopt: not this member's. Ask before each commit, and
  // commit under its epoch.
  std::optional<Holding> Held(int partition) const ABSL_LOCKS_EXCLUDED(mu_);
  // The work under `epoch` is finished and checkpointed. Ignored unless OnDraining asked for it.
  void Drained(int partition, int64_t epoch) ABSL_LOCKS_EXCLUDED(mu_);

  // Who owned `partition` when this member read its record last; empty: no member, or it is not
  // known.
  std::string OwnerOf(int partition) const ABSL_LOCKS_EXCLUDED(mu_);

  MemberCounts counts() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PartitionMember(const MemberOptions& options, sync::OptimisticSyncStore* store,
                  PartitionWork* work, base::Clock* clock, telemetry::Registry* metrics,
                  uint64_t seed);

  void RunCycles() ABSL_LOCKS_EXCLUDED(mu_);
  // Of this member's presence.
  RecordName OwnName() const;
  // Notes the group, so that administrators find it. Whether that is done with.
  bool NoteGroup();
  // Waits for the next request to carry out; nullopt: the member has left.
  std::optional<RecordRequest> AwaitRequest() ABSL_LOCKS_EXCLUDED(mu_);
  // When to look whether a partition has been handed over; InfiniteDuration: none is awaited.
  absl::Duration NextLookLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration NextCycleAfterLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BeginCycleLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notices another process with this member's name.
  void NotePresence(const RecordRequest& request, const RecordReply& reply)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CountLocked(const RecordReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What a scrape shows; nullopt: the member has left.
  std::optional<GroupSight> Look() const ABSL_LOCKS_EXCLUDED(mu_);
  void RunWork() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for events; empty: the member has left, or is displaced.
  std::vector<WorkEvent> AwaitEvents() ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeDisplaced() ABSL_LOCKS_EXCLUDED(mu_);
  void Call(const WorkEvent& event) ABSL_LOCKS_EXCLUDED(mu_);

  const MemberOptions options_;
  const uint64_t instance_;
  PartitionWork* const work_;  // not owned
  base::Clock* const clock_;   // not owned
  SyncRecords records_;
  GroupRegistry registry_;

  mutable base::Mutex mu_;
  base::CondVar store_wake_;  // of the thread that runs cycles
  base::CondVar work_wake_;   // of the thread that calls the work
  MemberProtocol protocol_ ABSL_GUARDED_BY(mu_);
  base::UniformSource uniform_ ABSL_GUARDED_BY(mu_);
  absl::Duration cycle_began_ ABSL_GUARDED_BY(mu_);
  absl::Duration looked_ ABSL_GUARDED_BY(mu_);   // the last look for a hand-over
  double cycle_share_ ABSL_GUARDED_BY(mu_) = 1;  // of the interval, until the next cycle
  bool present_ ABSL_GUARDED_BY(mu_) = false;    // has written its presence
  bool displaced_ ABSL_GUARDED_BY(mu_) = false;  // and has not told the work yet
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;  // the thread that runs cycles has returned
  MemberCounts counts_ ABSL_GUARDED_BY(mu_);
  int64_t failures_before_ ABSL_GUARDED_BY(mu_) = 0;  // the cycle began

  base::Mutex stop_mu_;  // one Stop at a time joins
  std::thread store_thread_ ABSL_GUARDED_BY(stop_mu_);
  std::thread work_thread_ ABSL_GUARDED_BY(stop_mu_);

  const MemberMetrics metrics_;  // last: its reading uses all of the above
};

}  // namespace muster::partition
