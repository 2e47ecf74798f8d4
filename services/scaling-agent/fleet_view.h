// FleetView: the replicas of a target, as its actuator and their heartbeats tell together.
//
//   actuator: made ──► starting ──► ready, or parked ──► draining
//   heartbeats:            the first that names a queue of the target: it can work
//
// A replica counts as ready once its heartbeat was heard, whatever the platform says, for only then
// it receives. Where the actuator has no replicas of its own, as a dry run has none, the heartbeats
// alone count. Replicas that were ordered and do not show yet are starting; those that are too many
// for the last order are as good as gone.
//
// When most of those that were ready fall silent together, it is their reports that are lost, and
// not they: as long as the platform calls them ready they count as such, at the speed that was
// known last.
//
// Cold starts are learned from starts that it saw from their beginning, each once: a replica that
// falls silent and is heard again has not started.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/policy/policy.h"
#include "services/scaling-agent/worker_load.h"

namespace muster::scaling_agent {

// What the fleet is made of at an instant.
struct FleetSigns {
  absl::Time now;
  std::vector<WorkerLoad> workers;  // all processors that were heard
  // As the actuator showed it last; `is_seen` is false where it has not for too long.
  scaling::actuator::TargetState state;
  bool is_seen = false;
  bool has_platform = true;      // else heartbeats alone count
  bool trusts_platform = false;  // nobody can have heard all heartbeats yet
  // Since when replicas that are missing can have been ordered at the earliest: since the last
  // order that is known, or since this agent leads.
  absl::Time ordered;
  int standby = 0;  // ready and idle ones that count as parked
};

struct FleetLook {
  scaling::policy::Fleet fleet;
  scaling::policy::Estimates estimates;
  // The actuator's names of those that may go, with the fewest leases first; without a platform
  // their own.
  std::vector<std::string> let_go_first;
  // Replicas that are there or to come, and do not drain; parked ones too.
  int live = 0;
  bool has_lost_reports = false;
};

// Not thread-safe.
class FleetView {
 public:
  FleetView(const SpeedOptions& speed, int max_tasks) : speed_(speed), max_tasks_(max_tasks) {}

  FleetLook Look(const FleetSigns& signs);

 private:
  struct Tally;

  void NoteIdleness(const FleetSigns& signs);
  void NotePlatform(const FleetSigns& signs);
  bool HasLostReports(const FleetSigns& signs) const;
  absl::Time OrderedBy(const FleetSigns& signs) const;
  void TakeReplicas(const FleetSigns& signs, Tally* tally);
  void TakeHeartbeats(const FleetSigns& signs, Tally* tally);
  void TakeReady(const WorkerLoad* worker, const std::string& name, const FleetSigns& signs,
                 Tally* tally);
  void TakeStarting(const scaling::actuator::Replica& replica, const FleetSigns& signs,
                    Tally* tally);
  void Settle(const FleetSigns& signs, Tally* tally) const;

  LearnedSpeed speed_;
  const int max_tasks_;
  std::map<std::string, absl::Time> idle_since_;       // by instance
  std::map<std::string, absl::Time> starting_;         // by name: since when
  std::set<std::string> were_ready_;                   // names of those that are shown
  absl::Time watched_since_ = absl::InfiniteFuture();  // the platform, without a gap
  int tasks_ = 0;                                      // of those that were heard last
  std::optional<int> wanted_;                          // by the platform
  absl::Time rose_ = absl::InfinitePast();             // when that grew last
};

}  // namespace muster::scaling_agent
