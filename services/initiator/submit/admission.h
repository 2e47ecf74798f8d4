// Admission: refuses a new batch as long as what waits of its job would take longer than it may.
//
//   items that wait ─┬─ none ────────────────────────────────► taken in
//                    ├─ the scaling agent says when they are done ─┬─► within max_drain: taken in
//                    ├─ or they are divided by what processors do ─┴─► later: refused, with when
//                    └─ nobody can tell ──────────────────────► taken in      to come again
//
// Only jobs that have queue.max_drain ask anybody anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/client/leading_agent.h"
#include "muster/job/job.h"
#include "muster/queue/queue_store.h"
#include "services/initiator/submit/job_speeds.h"

namespace muster::initiator::submit {

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
