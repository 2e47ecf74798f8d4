// SPDX-License-Identifier: Apache-2.0

// The bounds of the scaling agent, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace muster::scaling_agent {

// The leader's lease, and how often each agent checks it. After a leader is killed, another agent
// leads at the latest one lease and two steps after the last renewal: within five seconds.
inline constexpr absl::Duration kLeaseDuration = absl::Seconds(3);
inline constexpr absl::Duration kLeaseStep = absl::Milliseconds(750);
// The longest lease that a record may claim: a faulty record must not stop the other agents for a
// day.
inline constexpr absl::Duration kMaxLeaseDuration = absl::Hours(1);

// The agent reads queues, replicas and rules, and decides, once in this period.
inline constexpr absl::Duration kLookPeriod = absl::Seconds(1);
// The shortest time between two decisions for one target: producers that put little and often share
// one decision.
inline constexpr absl::Duration kLeastDecisionGap = absl::Milliseconds(50);
// From a trigger until the decision. An initiator announces a batch piece by piece while it puts
// it: decided upon the first piece alone, a growth would come in two steps, each rounded up.
inline constexpr absl::Duration kGatherTriggers = absl::Milliseconds(100);

// Announcements that wait for the next decision. Any more are summed up.
inline constexpr size_t kMaxPendingAnnouncements = 10'000;

// A queue reading, or an observation of the replicas, that is older than this does not count.
inline constexpr absl::Duration kReadingLifetime = absl::Seconds(3);
inline constexpr absl::Duration kTargetStateLifetime = absl::Seconds(5);
// Queues come and go seldom. The agent looks at once for a queue that a trigger names.
inline constexpr absl::Duration kListPeriod = absl::Seconds(10);
// How often the leader asks which jobs there are while a queue of the rules belongs to none: a
// replica that starts meanwhile works for all jobs.
inline constexpr absl::Duration kJobsPeriod = absl::Seconds(2);
// After this time the agent reports a name in the rules that matches no queue and no job. A mesh
// that has just started may still create its queues and jobs, and the agent lists them seldom.
inline constexpr absl::Duration kUnknownNameGrace = absl::Seconds(20);
// Partitions of one name in the rules: more than a job may have.
inline constexpr size_t kMaxPartitions = 1024;
// Page size when listing the store's queues; most stores have fewer queues.
inline constexpr int kQueuesPerPage = 1000;

// A new leader lets no replica go for this long; by then all heartbeats must have arrived. Three
// heartbeat periods and one look.
inline constexpr absl::Duration kSettleTime = absl::Seconds(7);
// If the wall clock is put back by less than this, the loop waits for it; if by more, the policy
// starts measuring anew.
inline constexpr absl::Duration kMaxStepBack = absl::Seconds(1);

// So long the replicas of which most fall silent at once count as at work, though the bus brings
// what others say.
inline constexpr absl::Duration kLostReportsPatience = absl::Minutes(1);

// The most dequeue tasks of one job that a heartbeat may report and an order may ask for.
inline constexpr int kMaxTasks = 1024;

// Only the speed of a replica that is busier than this shows what it can do.
inline constexpr double kLeastBusyShare = 0.2;
// From a replica's first heartbeat at work until its figures count: one regular heartbeat period,
// even if newcomers make it send heartbeats more often.
inline constexpr absl::Duration kWarmUp = absl::Seconds(2);
// A replica whose heartbeats name no job for so long waits for one. Each processor sends its first
// heartbeats before it has looked for its jobs: the next ones come every two seconds.
inline constexpr absl::Duration kJobWait = absl::Seconds(10);
// With fewer items per thread in a heartbeat's window, the items at the window's ends make the rate
// wrong by a tenth.
inline constexpr double kFewItems = 10;
// Replicas that an order names to go first: as many as an actuator marks in one action.
inline constexpr size_t kMaxLetGoFirst = 200;

// The pause after a failed order; each further failure in a row doubles it.
inline constexpr absl::Duration kFirstOrderPause = absl::Seconds(1);
inline constexpr absl::Duration kMaxOrderPause = absl::Seconds(15);
// How often the agent repeats an order that the actuator met only in part, if nothing changes.
inline constexpr absl::Duration kUnmetOrderPause = absl::Seconds(15);

// Decisions that are kept of each target; the contract names it.
inline constexpr size_t kKeptDecisions = 1000;
inline constexpr int kMaxPageSize = 1000;
inline constexpr int kDefaultPageSize = 50;
// Followers of decisions, and how many decisions one of them may fall behind before it misses some.
// Each follower occupies a thread of the server.
inline constexpr size_t kMaxFollowers = 32;
inline constexpr size_t kFollowerBacklog = 256;
// How often a follower's thread checks whether its caller has gone or the agent stops.
inline constexpr absl::Duration kFollowPeriod = absl::Milliseconds(200);

// Open StreamIsActive calls. A KEDA opens one for each ScaledObject, and the rules have at most 100
// targets; the rest is for a second KEDA and for those that have not noticed yet that they are cut
// off. They hold no threads.
inline constexpr size_t kMaxActivityStreams = 256;
// How often a stream says again that there shall be replicas. KEDA hears the first one that comes
// after it has made the HPA, and writes the status of its ScaledObject for each.
inline constexpr absl::Duration kActivityRepeat = absl::Seconds(5);
// For a call that is passed on to the leader: HPAs and KEDA ask again after some seconds anyway.
inline constexpr absl::Duration kPassOnTimeout = absl::Seconds(5);

// Ids that one write reserves, and ids that must be available: one look makes no more decisions.
inline constexpr int64_t kDecisionIdRange = 100;
inline constexpr size_t kDecisionIdsAtHand = 40;

// Recordings that one target keeps, two files each: together with the size of a file this bounds
// the disk space. Each new term as the leader and each new promise begins a recording.
inline constexpr int kMaxRecordings = 20;

// The duration of an override: long enough to be noticed, short enough that a forgotten one ends.
inline constexpr absl::Duration kMinOverride = absl::Seconds(1);
inline constexpr absl::Duration kMaxOverride = absl::Hours(24 * 30);
// How often the leader reads the overrides again. Only the leader writes them, but a write of the
// previous leader may still arrive.
inline constexpr absl::Duration kOverridesPeriod = absl::Seconds(5);
inline constexpr int kMaxOverrideTries = 10;

// The promise where the rules of a target state none.
inline constexpr absl::Duration kDefaultSla = absl::Minutes(5);

}  // namespace muster::scaling_agent
