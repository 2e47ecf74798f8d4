// JobThroughput: how fast the processors that are there can work for each job, as their heartbeats
// tell.
//
// A heartbeat says how long an item took where one was finished since the last one: of slow items
// most heartbeats say nothing. So it is remembered by job, and newer items weigh more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/roster.h"
#include "muster/client/scaling_client.h"
#include "muster/job/job.h"
#include "muster/queue/queue_store.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::initiator::submit {

// Thread-safe.
class JobThroughput {
 public:
  // Learns from what is heard from now on. Nothing is owned; `account` is that of the jobs' queues.
  static absl::StatusOr<std::unique_ptr<JobThroughput>> Open(bus::HeartbeatBus* bus,
                                                             bus::Roster* roster,
                                                             absl::string_view account,
                                                             base::Clock* clock);

  // What all threads of the processors that are there can finish together when none is idle. 0: no
  // processor works for the job, or none was heard of that has finished an item.
  double ItemsPerSecond(const std::string& job);

 private:
  // Of items that were finished, by all processors.
  struct Learned {
    double items = 0;
    double thread_seconds = 0;
    absl::Duration at;  // monotonic; when both were added to
  };

  JobThroughput(bus::Roster* roster, absl::string_view account, base::Clock* clock);

  void OnHeartbeat(const v1::Heartbeat& heartbeat);
  // Jobs come and go: the one that was heard of longest ago gives way.
  Learned& FindOrAddLocked(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int ThreadsFor(const std::string& job);
  bool IsOurs(const v1::JobLoad& load) const;

  bus::Roster* const roster_;  // not owned
  const std::string queues_;   // what the names of the account's queues begin with
  base::Clock* const clock_;   // not owned

  base::Mutex mu_;
  std::map<std::string, Learned> learned_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<bus::HeartbeatBus::Subscription> subscription_;  // the last: it uses the others
};

// Admission: refuses a new batch as long as what waits of its job would take longer than it may.
//
//   items that wait ─┬─ none ────────────────────────────────► taken in
//                    ├─ the scaling agent says when they are done ─┬─► within max_drain: taken in
//                    ├─ or they are divided by what processors do ─┴─► later: refused, with when
//                    └─ nobody can tell ──────────────────────► taken in      to come again
//
// Only jobs that have queue.max_drain ask anybody anything.

// Thread-safe.
class Admission {
 public:
  // What is pointed to is not owned.
  struct Dependencies {
    queue::QueueStore* queues = nullptr;
    JobThroughput* throughput = nullptr;
    client::ScalingLeaderClient* agent = nullptr;
    base::Clock* clock = nullptr;
    std::string account;  // of the jobs' queues
  };

  explicit Admission(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  // ResourceExhausted, reason DRAIN_TOO_LONG, with when to try again: not now. Any trouble on the
  // way to an estimate is OK.
  absl::Status Admit(const job::JobDefinition& job);

 private:
  // Items in the job's input queues, those in hand and those to be tried again included.
  int64_t Waiting(const job::JobDefinition& job);
  // nullopt: nobody can tell.
  std::optional<absl::Duration> DrainTime(const job::JobDefinition& job, int64_t waiting);
  // Counts the replicas that the agent would start, which heartbeats know nothing of. nullopt: none
  // answers soon, or it only watches, or it has no target for the job or sees no end.
  std::optional<absl::Duration> AgentsDrainTime(const job::JobDefinition& job);

  const Dependencies deps_;
};

}  // namespace muster::initiator::submit
