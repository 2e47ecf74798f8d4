// SPDX-License-Identifier: Apache-2.0

// Admission: refuses a new batch while the waiting items of its job would take longer than
// queue.max_drain.
//
//   items that wait ─┬─ none ────────────────────────────────► taken in
//                    ├─ the scaling agent says when they are done ─┬─► within max_drain: taken in
//                    ├─ or they are divided by what processors do ─┴─► later: refused, with when
//                    └─ no estimate ──────────────────────────► taken in      to come again
//
// For a job without queue.max_drain, Admission asks no queue and no scaling agent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/client/scaling_client.h"
#include "muster/job/job.h"
#include "muster/queue/queue_store.h"
#include "services/initiator/submit/job_throughput.h"

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
