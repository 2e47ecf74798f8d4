// TargetLoop: sees, decides and acts for one target. Three threads, so that nothing that hangs
// stops the decisions:
//
//   queues    ─► QueueWatch ──┐
//   triggers  ────────────────┼─► decides ─► DecisionLog
//   heartbeats ───────────────┤      │
//   actuator  ◄─► ActuationWorker ◄─┴──────┘
//
// It decides upon each trigger and once a second, while this agent leads. While it cannot see all
// there is, nobody goes: without the queues' statistics, without the actuator's answer, without the
// heartbeats of most replicas, and until one that has just begun to lead has heard every heartbeat.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/roster.h"
#include "muster/queue/queue_store.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/policy/policy.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/v1/scaling_service.pb.h"
#include "services/scaling-agent/actuation_worker.h"
#include "services/scaling-agent/decision_log.h"
#include "services/scaling-agent/fleet_view.h"
#include "services/scaling-agent/overrides.h"
#include "services/scaling-agent/periodic_thread.h"
#include "services/scaling-agent/queue_watch.h"
#include "services/scaling-agent/scaling_messages.h"
#include "services/scaling-agent/target_policy.h"

namespace muster::scaling_agent {

struct LoopOptions {
  std::string account;  // of the queues
  SpeedOptions speed;
  int max_tasks = 0;  // of a replica; 0: as many as it has
  RecordingPlace recording;
};

// Nothing is owned; all outlives the loop, and is thread-safe.
struct LoopDependencies {
  queue::QueueStore* queues = nullptr;
  sync::OptimisticSyncStore* sync = nullptr;
  scaling::actuator::Actuator* actuator = nullptr;
  Overrides* overrides = nullptr;
  DecisionLog* decision_log = nullptr;
  base::Clock* clock = nullptr;
  ActuationWorker::Token token;                           // while this agent leads
  std::function<std::vector<bus::RosterEntry>()> roster;  // of processors
  std::function<std::vector<std::string>()> jobs;         // as of QueueWatch
};

// Thread-safe, save that each of Decide, LookAtQueues, Act and FillIds has one caller at a time.
class TargetLoop {
 public:
  // Of a target that `rules` have.
  TargetLoop(const scaling::rules::Target& target, LoopOptions options, LoopDependencies deps,
             std::shared_ptr<const RulesInForce> rules);
  ~TargetLoop();  // Stop()s

  void Start();
  void Stop();

  // The four steps; Start has threads take them, all but the last.
  void Decide();
  void LookAtQueues();
  void Act();
  // On a thread that may wait for the sync store.
  absl::Status FillIds() { return ids_.Fill(); }

  // Whether the same loop can go on for it: rules that only set it differently make no other.
  bool IsFor(const scaling::rules::Target& target) const;
  void UseRules(std::shared_ptr<const RulesInForce> rules);
  // Work was put into a queue of the account; most are others'.
  void OnWork(absl::string_view queue, int64_t items);
  // Something has changed: decides soon.
  void Wake();

  const std::string& name() const { return target_.id; }
  bool HasQueue(absl::string_view queue) const;
  v1::ScalingTarget Status() const;
  // nullopt: nothing was seen yet.
  std::optional<Snapshot> snapshot() const;

 private:
  // What is kept of an agent's time as the leader.
  struct Term {
    int64_t token = 0;
    absl::Duration since;
    absl::Time began;  // the same, as a time of day
    int standby = 0;   // as decided last
    std::optional<v1::ScalingDecision> last;
  };

  void TakeRules();
  bool FollowLead();
  void BeginTerm(int64_t token);
  absl::Time TimeOfDecision();
  void PassOnAnnouncements(absl::Time now);
  FleetSigns SignsAt(absl::Time now) const;
  bool IsTooEarly(const FleetSigns& signs,
                  const std::vector<scaling::policy::QueueReading>& queues) const;
  Weighed Weigh(const FleetSigns& signs, std::vector<scaling::policy::QueueReading> queues,
                int* live);
  int UnseenReplicas(const FleetSigns& signs, int live, const Weighed& weighed) const;
  void Conclude(const Weighed& weighed);
  v1::ScalingAction ActionFor(const scaling::actuator::Order& order) const;
  void Publish(const v1::GetDecisionResponse& record);
  void NoteSeen(const scaling::policy::Observation& observation);
  void OnAnswer(const std::string& decision,
                const absl::StatusOr<scaling::actuator::Outcome>& outcome);
  std::string HealthIssues() const;

  const scaling::rules::Target target_;  // as it was first; its numbers may have changed since
  const LoopOptions options_;
  const LoopDependencies deps_;

  QueueWatch watch_;
  ActuationWorker actuation_;
  DecisionIds ids_;

  // Of the thread that decides.
  std::shared_ptr<const RulesInForce> rules_;
  TargetPolicy policy_;
  FleetView fleet_;
  std::optional<Term> term_;
  absl::Time last_time_ = absl::InfinitePast();
  std::vector<std::string> let_go_first_;
  bool has_lost_reports_ = false;  // at the last look at the fleet
  int decided_ = 0;                // replicas, those on standby included, as decided last

  mutable base::Mutex mu_;
  std::shared_ptr<const RulesInForce> next_rules_ ABSL_GUARDED_BY(mu_);
  std::vector<scaling::policy::Announcement> announced_ ABSL_GUARDED_BY(mu_);
  std::optional<Snapshot> snapshot_ ABSL_GUARDED_BY(mu_);
  absl::Status deciding_ ABSL_GUARDED_BY(mu_);          // what hinders it
  absl::Status heartbeat_status_ ABSL_GUARDED_BY(mu_);  // the replicas

  PeriodicThread queues_thread_;
  PeriodicThread actuation_thread_;
  PeriodicThread decides_thread_;
};

}  // namespace muster::scaling_agent
