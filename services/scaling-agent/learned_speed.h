// LearnedSpeed: what the heartbeats of a target's workers teach of the speed of things.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/scaling/policy/cold_start.h"
#include "muster/scaling/policy/observation.h"
#include "muster/scaling/policy/service_rate.h"
#include "services/scaling-agent/worker_load.h"

namespace muster::scaling_agent {

struct SpeedOptions {
  absl::Duration cold_start = absl::Seconds(30);  // believed until some were measured
  // What one replica may use. 0: this machine's cores are shared by all replicas.
  double replica_cores = 0;
};

// Not thread-safe. Learns nothing twice: each heartbeat has its number. The first ones of a replica
// at work count only where nothing is known yet.
class LearnedSpeed {
 public:
  explicit LearnedSpeed(const SpeedOptions& options);

  // The workers that listen to the target's queues, at their last heartbeats.
  void See(const std::vector<WorkerLoad>& workers);
  // A replica that was seen starting has shown its first heartbeat.
  void SeeStart(absl::Duration measured) { cold_start_.See(measured); }

  absl::Duration ColdStart() const { return cold_start_.P95(); }
  // For replicas of `tasks`. A replica that was released works at once: release is zero.
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
