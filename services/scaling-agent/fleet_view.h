// SPDX-License-Identifier: Apache-2.0

// FleetView: the replicas of a target, combined from the actuator's observations and the replicas'
// heartbeats.
//
//   actuator: made ──► starting ──► ready, or parked ──► draining
//   heartbeats:            the first one that names a queue of the target: it can work, unless it
//                          waits for a release (muster/release): then it exists, and does nothing
//
// A replica counts as ready only once its first heartbeat has arrived, also if the platform calls
// it ready before, because only then can it receive work. Where the actuator has no replicas of its
// own, as in a dry run, only the heartbeats count. Replicas that were ordered and do not show yet
// count as starting; replicas beyond the last order count as gone, and parked ones as draining.
//
// When most of the ready replicas fall silent together, their reports are lost and the replicas
// still run: as long as the platform calls them ready they count as ready, at the last known speed.
//
// FleetView learns cold starts from replicas that it saw from the beginning of their start, each
// once: a replica that falls silent and sends heartbeats again has not started, and one that is
// there and waits for its first job does not start slowly.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/scaling/policy/policy.h"
#include "muster/telemetry/registry.h"
#include "services/scaling-agent/worker_load.h"

namespace muster::scaling_agent {

// The input of one look at the fleet.
struct FleetSigns {
  absl::Time now;
  std::vector<WorkerLoad> workers;  // all processors that have sent a heartbeat
  // The actuator's last observation; `is_seen` is false where that is too old.
  actuator::TargetState state;
  bool is_seen = false;
  bool has_platform = true;      // false: only heartbeats count
  bool trusts_platform = false;  // this agent cannot have received all heartbeats yet
  bool hears_others = false;     // other roles of the mesh, by the same bus
  // The earliest time at which missing replicas can have been ordered: that of the last known
  // order, or the time at which this agent began to lead.
  absl::Time ordered;
  int standby = 0;  // ready and idle ones that count as parked
};

struct FleetLook {
  scaling::policy::Fleet fleet;
  scaling::policy::Estimates estimates;
  // The replicas that may go, those with the fewest leases first: the actuator's names for them, or
  // their instances where there is no platform.
  std::vector<std::string> let_go_first;
  // Replicas that exist or are starting, parked and waiting ones included, draining ones excluded.
  int live = 0;
  int waiting = 0;  // of these, for a release
  bool has_lost_reports = false;
};

// Not thread-safe.
class FleetView {
 public:
  // `cold_starts` gets each start that is measured.
  FleetView(const SpeedOptions& speed, int max_tasks, telemetry::Histogram cold_starts = {})
      : speed_(speed), max_tasks_(max_tasks), cold_starts_(cold_starts) {}

  FleetLook Look(const FleetSigns& all);

 private:
  struct Tally;
  // When a replica was made, by this agent's clock.
  struct Appearance {
    absl::Time started;  // as the platform says; a StatefulSet gives its next pod the same name
    absl::Time earliest, latest;
  };

  void NoteIdleness(const FleetSigns& signs);
  void NoteJobless(const FleetSigns& signs);
  void NotePlatform(const FleetSigns& signs);
  bool HasLostReports(const FleetSigns& signs);
  absl::Time OrderedBy(const FleetSigns& signs) const;
  absl::Time MadeAt(const actuator::Replica& replica, const FleetSigns& signs) const;
  void TakeReplicas(const FleetSigns& signs, Tally* tally);
  void TakeHeartbeats(const FleetSigns& signs, Tally* tally);
  void TakeReady(const WorkerLoad* worker, const std::string& name, const FleetSigns& signs,
                 Tally* tally);
  void TakeStarting(const actuator::Replica& replica, const FleetSigns& signs, Tally* tally);
  void Settle(const FleetSigns& signs, Tally* tally) const;

  LearnedSpeed speed_;
  const int max_tasks_;
  const telemetry::Histogram cold_starts_;
  std::map<std::string, absl::Time> idle_since_;     // by instance
  std::map<std::string, absl::Time> jobless_since_;  // the same, until they have a queue
  std::map<std::string, absl::Time> starting_;       // by name: since when
  std::set<std::string> were_ready_;            // names of the replicas that the platform shows
  std::map<std::string, Appearance> appeared_;  // by name, of those that the platform shows
  absl::Time watched_since_ = absl::InfiniteFuture();  // the platform, without a gap
  absl::Time watched_until_ = absl::InfinitePast();    // the same
  absl::Time lost_since_ = absl::InfiniteFuture();     // the reports of most; later: they come
  int tasks_ = 0;                                      // of the replicas that reported last
  std::optional<int> wanted_;                          // by the platform
  absl::Time rose_ = absl::InfinitePast();             // when wanted_ last grew
};

}  // namespace muster::scaling_agent
