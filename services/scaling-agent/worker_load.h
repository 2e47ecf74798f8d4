// WorkerLoad: what a processor's last heartbeat says of the queues of one target.
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
  bool leaving = false;  // it said so; silence is another thing
  bool silent = false;   // nothing was heard of it for too long
  bool listens = false;  // to one of the target's queues

  // Of all jobs that it works for: who lets it go stops them all.
  int64_t unsettled = 0;
  bool worked = false;  // in the heartbeat's window, or now

  // Of those jobs that work on the target's queues.
  int threads = 0;  // the most there may be
  int running = 0;  // of them, now
  double busy_share = 0;
  double items_per_second = 0;
  double finished = 0;  // items, in the heartbeat's window; 0 where that is not known
  std::optional<absl::Duration> service_time;
  int64_t attempts = 0;
  int64_t throttled = 0;

  double cpu_cores = 0;  // of the whole process
};

// Figures that nobody could mean, such as negative ones, count as none.
WorkerLoad LoadOf(const bus::RosterEntry& entry, absl::string_view account,
                  const std::vector<std::string>& queues);

// LearnedSpeed: what the heartbeats of a target's workers teach of the speed of things.

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
