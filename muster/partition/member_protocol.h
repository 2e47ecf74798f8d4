// SPDX-License-Identifier: Apache-2.0

// MemberProtocol: one member of a group as a state machine without I/O, threads or clock. It says
// which request to carry out next; its driver carries the request out, hands the reply back, and
// acts on the events. PartitionMember drives it over a store; a simulator drives hundreds in
// virtual time; a search over states copies it.
//
// A cycle: beat · renew what is mine · read who is a member · read the other partitions · read the
// presence of members that own none · then decide and do, one write after the other. Partitions
// share records, the pages: each request is about one page, and a write changes all of its
// partitions that the purpose is about. A cycle takes 2 requests for the beat, 1 for the members, 2
// for each page with partitions of its own, 1 for each other page, 1 for each member that owns
// none, and 3 for each write of actions. A race that was lost, or an outcome that is not known,
// adds 2 requests, at most kMaxWrites - 1 times for each write. So the number of members does not
// count while each owns something, and a partition counts only as part of its page.
//
// Two members never work under the same partition's lease, because
//   1. each change of a page is a compare-and-set on the version that was read, so of each of its
//      partitions, too;
//   2. an owner uses 90 % of a lease, from before it sends the renewal; the others wait for the
//      whole lease, from after they have read that renewal. The same holds for the grace of a
//      hand-over;
//   3. an owner frees a partition only after the driver has confirmed that the work has stopped.
// This holds while clocks differ by less than a tenth in speed, and while the driver stops the work
// at the deadline. For a process that is suspended in the midst of a write, the epoch is the fence:
// what is written downstream carries it, and a lower epoch is refused (checkpoint_store.h).
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/partition/balancer.h"
#include "muster/partition/observations.h"
#include "muster/partition/options.h"
#include "muster/partition/records.h"

namespace muster::partition {

// What happens to the work on a partition. For each epoch: kAssigned, maybe kDraining, kRevoked.
struct WorkEvent {
  enum class Kind {
    kAssigned,  // work may begin
    kDraining,  // finish, checkpoint, then call Drained
    kRevoked,   // stop at once, then call Stopped
  };

  Kind kind = Kind::kAssigned;
  int partition = 0;
  int64_t epoch = 0;
  // Without the owner's consent. kAssigned: another member had lost it, by its lease or the grace
  // of a hand-over. kRevoked: this one has.
  bool lost = false;

  std::strong_ordering operator<=>(const WorkEvent&) const = default;
};

// The right to work on a partition.
struct Holding {
  int64_t epoch = 0;
  absl::Duration until;  // of the monotonic clock: from then on, another member may hold it
};

// Not thread-safe. `now` is the member's monotonic clock, and never goes back.
class MemberProtocol {
 public:
  // `options` are valid. `seed` chooses among equal partitions.
  MemberProtocol(const MemberOptions& options, uint64_t seed);

  // Starts a cycle; nothing while one runs or the member stops. `wall` is noted in what this cycle
  // claims, for people to read; nothing is decided by it.
  void BeginCycle(absl::Duration now, absl::Time wall = absl::UnixEpoch());
  // Between cycles, reads the partitions that this member has asked for, and claims what has been
  // handed over to it; nothing while a cycle runs.
  void BeginLook(absl::Duration now);
  // Drains and releases all partitions, then leaves the group; not if `stays_listed`, for another
  // process that has this member's name. Calling it twice is fine.
  void BeginStop(absl::Duration now, bool stays_listed = false);

  // The request to carry out; nullopt: none until the next event, cycle or deadline. Each request
  // is followed by its reply.
  std::optional<RecordRequest> Next(absl::Duration now);
  void OnReply(const RecordReply& reply, absl::Duration now);

  // Revokes what is due by `now`. Call it at NextDeadline.
  void Expire(absl::Duration now);
  absl::Duration NextDeadline() const;

  // The events since the last call, in order.
  std::vector<WorkEvent> TakeEvents();
  // The work under `epoch` is finished and checkpointed. Ignored unless it is asked to drain.
  void Drained(int partition, int64_t epoch);
  // The work under `epoch` has stopped, as kRevoked asked.
  void Stopped(int partition, int64_t epoch);

  // nullopt: this member must not work on the partition.
  std::optional<Holding> Held(int partition, absl::Duration now) const;
  // As it was read last; empty: no member, or it is not known.
  std::string OwnerOf(int partition) const;
  // How many partitions this member may work on, and of how many it sees no owner that lives.
  int Owned(absl::Duration now) const;
  int Unowned(absl::Duration now) const;
  bool in_cycle() const { return phase_ != Phase::kIdle; }
  // The next cycle may come sooner: this member has just joined, or a partition is on its way here.
  // It ends with the hand-over or with the owner's lease.
  bool wants_cycle_soon() const;
  // A partition is on its way here: BeginLook finds out when it has come.
  bool awaits_hand_over() const;
  // Has left the group, or given up leaving it.
  bool has_left() const { return left_; }

  std::strong_ordering operator<=>(const MemberProtocol&) const = default;
  bool operator==(const MemberProtocol&) const = default;

 private:
  enum class Phase { kIdle, kObserve, kPresence, kAct, kClaimDue };
  enum class Purpose {
    kBeat,
    kRenew,
    kRelease,
    kJoin,
    kLook,  // read only
    kClaim,
    kAsk,
    kGrant,
    kRefuse,
    kForget,  // delete the presence of a dead member, or its own
    kLeave,
  };
  enum class Stage { kRead, kWrite, kReadBack };

  // Reads a record, changes it, and reads it back where the outcome of the change is not known.
  struct Step {
    Purpose purpose = Purpose::kLook;
    RecordName name = {};
    std::vector<int> partitions = {};  // of an action; of a page otherwise: all that need it
    Stage stage = Stage::kRead;
    RecordValue intended = {};
    std::vector<int> changed = {};  // partitions that `intended` changes
    std::vector<int> taken = {};    // of a claim: those of them that another member has lost
    uint64_t version = sync::kAbsent;
    absl::Duration write_began = absl::ZeroDuration();
    int writes = 0;

    std::strong_ordering operator<=>(const Step&) const = default;
    bool operator==(const Step&) const = default;
  };

  // A partition of this member.
  //
  //   none ── claimed ──► held ── granted, stop ──► draining ── Drained ──► stopping ── Stopped ──┐
  //    ▲ ▲                 └── lost, or due ─────────┴── due ─────────────►  │                    ▼
  //    │ └── not to be released ─────────────────────────────────────────────┘ releasing
  //    └────────────────────────────────────────────── record freed, or another's ────────────────┘
  struct Work {
    enum class State { kNone, kHeld, kDraining, kStopping, kReleasing };

    State state = State::kNone;
    int64_t epoch = 0;
    absl::Duration until = absl::ZeroDuration();
    absl::Duration tried = absl::ZeroDuration();  // when the last renewal was tried
    bool release = false;                         // free the record once stopped
    bool release_due = false;                     // try it now, not only in the next cycle

    std::strong_ordering operator<=>(const Work&) const = default;
    bool operator==(const Work&) const = default;
  };

  Work& At(int partition) { return works_[static_cast<size_t>(partition)]; }
  const Work& At(int partition) const { return works_[static_cast<size_t>(partition)]; }
  int PageOf(int partition) const { return partition / options_.page_rows; }
  int RowIn(int partition) const { return partition % options_.page_rows; }
  int FirstOf(int page) const { return page * options_.page_rows; }
  int EndOf(int page) const;
  // Whether a partition of the page is in the state.
  bool HasAny(int page, Work::State state) const;
  Step StepFor(Purpose purpose, std::vector<int> partitions) const;

  // Planning: which step comes next.
  std::optional<Step> NextStep(absl::Duration now);
  std::optional<Step> DueRenewal(absl::Duration now);
  std::optional<Step> DueRelease();
  std::optional<Step> StopStep();
  void AdvancePhase(absl::Duration now);
  void PlanCycle(absl::Duration now);
  Step Renewal(int page, absl::Duration now);
  std::optional<Step> DecideStep(absl::Duration now);
  static Purpose PurposeOf(Action::Kind kind);
  // Of a look: only claims of what has been handed over.
  std::optional<Step> ClaimDueStep(absl::Duration now);
  GroupView ViewForDecision(absl::Duration now) const;

  // Changes (member_changes.cc): what a step writes over what it read; nullopt: nothing.
  std::optional<RecordValue> Change(Step* step, const RecordReply& read, absl::Duration now);
  std::optional<RecordValue> ChangeOwners(Step* step, const RecordReply& read, absl::Duration now);
  std::optional<Ownership> ChangeOwnership(Purpose purpose, int partition, Ownership record,
                                           absl::Duration now) const;
  std::optional<RecordValue> ChangeMembers(const Step& step, const RecordReply& read,
                                           absl::Duration now);
  Ownership Claimed(int partition, const Ownership& record) const;

  // Replies.
  void OnRead(Step step, const RecordReply& reply, absl::Duration now);
  void OnReadBack(Step step, const RecordReply& reply, absl::Duration now);
  bool IsApplied(const Step& step, const RecordReply& reply) const;
  void Observe(const RecordName& name, const RecordReply& reply, absl::Duration now);
  void PrepareWrite(Step step, const RecordReply& read, absl::Duration now);
  void OnApplied(const Step& step, absl::Duration now);
  void OnOwnersApplied(const Step& step, absl::Duration now);
  void GiveUp(const Step& step);

  // The work on a partition.
  void NoticeLoss(int partition, const Ownership& record);
  void Hold(const Step& step, int partition, absl::Duration now);
  void Extend(int partition, absl::Duration began);
  void Drain(int partition, absl::Duration now);
  void Revoke(int partition, bool release);

  MemberOptions options_;
  Observations seen_;
  std::vector<Work> works_;
  std::vector<WorkEvent> events_;
  Phase phase_ = Phase::kIdle;
  std::deque<Step> plan_;
  std::optional<Step> step_;  // in progress
  int64_t wall_millis_ = 0;   // as the cycle began
  int cycles_ = 0;            // ended; counts to 2
  bool listed_ = false;       // the others can see this member
  bool looks_again_ = false;  // reads the members anew before the next action
  int looked_page_ = 0;       // where the last look between cycles ended
  int actions_ = 0;           // writes of this cycle
  int taken_ = 0;             // of these, claims of free partitions and requests
  bool stopping_ = false;
  int stop_failures_ = 0;
  int leave_steps_ = 0;
  bool left_ = false;
  uint64_t draws_;
};

}  // namespace muster::partition
