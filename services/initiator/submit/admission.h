// JobThroughput: how fast the live processors can work for each job, estimated from their
// heartbeats.
//
// A heartbeat says how long an item took only if the processor finished one since its last
// heartbeat; while items are slow, most heartbeats say nothing. JobThroughput therefore remembers
// the times by job, and gives newer items more weight.
#pragma once

#include <cstdint>
#include <functional>
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
  // Learns from heartbeats that arrive from now on. Nothing is owned; `account` is that of the
  // jobs' queues.
  static absl::StatusOr<std::unique_ptr<JobThroughput>> Open(bus::HeartbeatBus* bus,
                                                             bus::Roster* roster,
                                                             absl::string_view account,
                                                             base::Clock* clock);

  // The rate of all threads of the live processors together when none is idle. 0: no processor
  // works for the job, or no heartbeat has reported a finished item.
  double ItemsPerSecond(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Sums over the finished items of one job, by all processors.
  struct Learned {
    double items = 0;
    double thread_seconds = 0;
    absl::Duration at;  // monotonic; when both were added to
  };

  JobThroughput(bus::Roster* roster, absl::string_view account, base::Clock* clock);

  void OnHeartbeat(const v1::Heartbeat& heartbeat) ABSL_LOCKS_EXCLUDED(mu_);
  // Jobs come and go: a full table drops the job that was updated least recently.
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

// Admission: refuses a new batch while the waiting items of its job would take longer than
// queue.max_drain.
//
//   items that wait ─┬─ none ────────────────────────────────► taken in
//                    ├─ the scaling agent says when they are done ─┬─► within max_drain: taken in
//                    ├─ or they are divided by what processors do ─┴─► later: refused, with when
//                    └─ no estimate ──────────────────────────► taken in      to come again
//
// For a job without queue.max_drain, Admission asks no queue and no scaling agent.

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
    // How many items initiators hold back from the job's input queue, of which the argument is the
    // first partition; empty: none.
    std::function<int64_t(const queue::QueueId&)> held_back = nullptr;
  };

  explicit Admission(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  // OK: take the batch in. ResourceExhausted, reason DRAIN_TOO_LONG, with the time to try again:
  // refuse it for now. An error on the way to an estimate also answers OK.
  absl::Status Admit(const job::JobDefinition& job);

 private:
  // Items in the job's input queues, including leased items and items that wait for another
  // attempt, and items that initiators hold back from them.
  int64_t Waiting(const job::JobDefinition& job);
  // nullopt: neither the scaling agent nor the heartbeats give an estimate.
  std::optional<absl::Duration> DrainTime(const job::JobDefinition& job, int64_t waiting);
  // The agent's estimate counts the replicas that it would start, which heartbeats do not show.
  // nullopt: no agent answers soon, or it only watches, has no target for the job, or sees no end.
  std::optional<absl::Duration> AgentsDrainTime(const job::JobDefinition& job);

  const Dependencies deps_;
};

}  // namespace muster::initiator::submit
