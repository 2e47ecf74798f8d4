// SPDX-License-Identifier: Apache-2.0

// JobThroughput: how fast the live processors can work for each job, estimated from their
// heartbeats.
//
// A heartbeat says how long an item took only if the processor finished one since its last
// heartbeat; while items are slow, most heartbeats say nothing. JobThroughput therefore remembers
// the times by job, and gives newer items more weight.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/roster.h"
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

}  // namespace muster::initiator::submit
