// The bounds of the scaling agent, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace muster::scaling_agent {

// The leader's lease, and how often it is looked at. Another agent leads at the latest a lease and
// two steps after the last beat of one that was killed: within five seconds.
inline constexpr absl::Duration kLeaseDuration = absl::Seconds(3);
inline constexpr absl::Duration kLeaseStep = absl::Milliseconds(750);
// What a record may say: a slip of its writer must not stop the others for a day.
inline constexpr absl::Duration kMaxLeaseDuration = absl::Hours(1);

// Queues, replicas and rules are looked at, and decisions made, once in this.
inline constexpr absl::Duration kLookPeriod = absl::Seconds(1);
// Between two decisions for one target: producers that put little and often share one.
inline constexpr absl::Duration kLeastDecisionGap = absl::Milliseconds(50);
// From a trigger until the decision. An initiator announces a batch piece by piece while it puts
// it: decided upon the first piece alone, a growth would come in two steps, each rounded up.
inline constexpr absl::Duration kGatherTriggers = absl::Milliseconds(100);

// Announcements that wait for the next decision. More than so many within its gap are summed up.
inline constexpr size_t kMaxPendingAnnouncements = 10'000;

// A reading that is older, or a look at the replicas, does not count as one.
inline constexpr absl::Duration kReadingLifetime = absl::Seconds(3);
inline constexpr absl::Duration kTargetStateLifetime = absl::Seconds(5);
// Queues come and go seldom. One that a trigger names is looked for at once.
inline constexpr absl::Duration kListPeriod = absl::Seconds(10);
// A name in the rules that means no queue and no job for so long is told. A mesh that has just
// begun may be about to make its queues and jobs, and they are listed seldom.
inline constexpr absl::Duration kUnknownNameGrace = absl::Seconds(20);
// Of one name in the rules: as many partitions as a job may have, and then some.
inline constexpr size_t kMaxPartitions = 1024;
// As the store lists them; most have fewer.
inline constexpr int kQueuesPerPage = 1000;

// Who begins to lead lets nobody go until it must have heard all heartbeats: three, and a look.
inline constexpr absl::Duration kSettleTime = absl::Seconds(7);
// A clock on the wall that is put back by less is waited for; by more, the policy begins to measure
// anew.
inline constexpr absl::Duration kMaxStepBack = absl::Seconds(1);

// Dequeue tasks of one job that a heartbeat may tell of, and that may be asked for.
inline constexpr int kMaxTasks = 1024;

// Busier than this, a replica's speed tells what it can do.
inline constexpr double kLeastBusyShare = 0.2;
// From a replica's first heartbeat at work until one is believed: a heartbeat's regular time,
// however many newcomers have it send more of them.
inline constexpr absl::Duration kWarmUp = absl::Seconds(2);
// Fewer items of each thread in a heartbeat, and those at its ends make its rate wrong by a tenth.
inline constexpr double kFewItems = 10;
// Of replicas that should go first: as many as an actuator marks in one action.
inline constexpr size_t kMaxLetGoFirst = 200;

// After an order that failed, doubled with each failure in a row.
inline constexpr absl::Duration kFirstOrderPause = absl::Seconds(1);
inline constexpr absl::Duration kMaxOrderPause = absl::Seconds(15);
// An order that was carried out as far as it could be is given again so often, if nothing changes.
inline constexpr absl::Duration kUnmetOrderPause = absl::Seconds(15);

// Decisions that are kept of each target; the contract names it.
inline constexpr size_t kKeptDecisions = 1000;
inline constexpr int kMaxPageSize = 1000;
inline constexpr int kDefaultPageSize = 50;
// Who follows decisions, and what one of them may fall behind before it misses some. Each takes a
// thread of the server.
inline constexpr size_t kMaxFollowers = 32;
inline constexpr size_t kFollowerBacklog = 256;
// How soon one hears that its caller has gone, or that the agent stops.
inline constexpr absl::Duration kFollowPeriod = absl::Milliseconds(200);

// Ids that are reserved by one write, and those that must be at hand: more decisions are not made
// within a look.
inline constexpr int64_t kDecisionIdRange = 100;
inline constexpr size_t kDecisionIdsAtHand = 40;

// Recordings of a target beside each other, two files each: with the size of a file they bound what
// a disk is asked for. Each other leader's term and each other promise begins one.
inline constexpr int kMaxRecordings = 20;

// Overrides: long enough to be noticed, short enough that nobody forgets them for ever.
inline constexpr absl::Duration kMinOverride = absl::Seconds(1);
inline constexpr absl::Duration kMaxOverride = absl::Hours(24 * 30);
// Only the leader writes them; who led before may still be about to.
inline constexpr absl::Duration kOverridesPeriod = absl::Seconds(5);
inline constexpr int kMaxOverrideTries = 10;

// What is promised where the rules of a target say nothing.
inline constexpr absl::Duration kDefaultSla = absl::Minutes(5);

}  // namespace muster::scaling_agent
