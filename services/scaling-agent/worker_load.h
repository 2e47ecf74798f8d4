// SPDX-License-Identifier: Apache-2.0

// WorkerLoad: a processor's last heartbeat, reduced to the queues of one target. LearnedSpeed
// learns from these loads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/bus/roster.h"
#include "muster/scaling/policy/estimators.h"
#include "muster/scaling/policy/policy.h"

namespace muster::scaling_agent {

struct WorkerLoad {
  std::string instance;
  uint64_t sequence = 0;
  absl::Time heard;
  bool leaving = false;  // its heartbeat said so; a silent processor is not leaving
  bool silent = false;   // its last heartbeat is too old
  bool listens = false;  // to one of the target's queues
  bool waits = false;    // parked, for a release: it takes no work until a person lets it go
  bool jobless = false;  // none of its jobs works on the target's queues, or is kept from it

  // Over all jobs of the processor, because letting it go stops them all.
  int64_t unsettled = 0;
  bool worked = false;  // in the heartbeat's window, or now

  // Over the jobs that work on the target's queues.
  int threads = 0;  // maximum
  int running = 0;  // at present
  double busy_share = 0;
  double items_per_second = 0;
  double finished = 0;  // items, in the heartbeat's window; 0 where that is not known
  std::optional<absl::Duration> service_time;
  int64_t attempts = 0;
  int64_t throttled = 0;

  double cpu_cores = 0;  // of the whole process
};

// Impossible figures, such as negative ones, count as missing.
WorkerLoad LoadOf(const bus::RosterEntry& entry, absl::string_view account,
                  const std::vector<std::string>& queues);

// LearnedSpeed: estimates service rates, service times and cold starts from the heartbeats of a
// target's workers.

struct SpeedOptions {
  absl::Duration cold_start = absl::Seconds(30);  // assumed until enough starts were measured
  // The cores that one replica may use. 0: all replicas share this machine's cores.
  double replica_cores = 0;
};

// Not thread-safe. Learns from each heartbeat once, by its sequence number. The first heartbeats of
// a replica at work count only where nothing is known yet.
class LearnedSpeed {
 public:
  explicit LearnedSpeed(const SpeedOptions& options);

  // Learns from the last heartbeats of the workers that listen to the target's queues.
  void See(const std::vector<WorkerLoad>& workers);
  // Learns a measured cold start: a replica whose start was observed has sent its first heartbeat.
  void SeeStart(absl::Duration measured, absl::Time at) { cold_start_.See(measured, at); }
  // Forgets cold starts that are long ago.
  void ForgetOldStarts(absl::Time now) { cold_start_.ForgetOld(now); }

  absl::Duration ColdStart() const { return cold_start_.P95(); }
  // The estimates for replicas with `tasks` dequeue tasks. `release` is zero, because a released
  // replica works at once.
  scaling::policy::Estimates For(int tasks) const;

 private:
  struct Seen {
    uint64_t sequence = 0;  // of the last heartbeat
    absl::Time works_since = absl::InfiniteFuture();
  };

  const SpeedOptions options_;
  std::map<std::string, Seen> seen_;  // by instance
  scaling::policy::ServiceRate rate_;
  scaling::policy::ColdStart cold_start_;
  absl::Duration service_time_;
  double cpu_share_ = 0;
  double throttled_share_ = 0;
};

}  // namespace muster::scaling_agent
