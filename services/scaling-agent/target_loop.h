// SPDX-License-Identifier: Apache-2.0

// TargetLoop: observes one target, decides for it and acts on it. Three threads, so that a call
// that hangs does not stop the decisions:
//
//   queues     ──► QueueWatch ───────┐
//   triggers   ──────────────────────┼─► decides ─► DecisionLog
//   heartbeats ──────────────────────┤      │
//   actuator   ◄─► ActuationWorker ◄─┴──────┘
//
// While this agent leads, the loop decides upon each trigger and once a second. While its view is
// incomplete it lets no replica go: without the queues' statistics, without the actuator's answer,
// without the heartbeats of most replicas, and, after the agent has begun to lead, until every
// heartbeat must have arrived.
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
#include "muster/actuator/actuator.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/roster.h"
#include "muster/queue/queue_store.h"
#include "muster/scaling/policy/policy.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"
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

using OnDesired = std::function<void(const std::string& target, std::optional<int> desired)>;

struct LoopOptions {
  std::string account;  // of the queues
  SpeedOptions speed;
  int max_tasks = 0;  // of a replica; 0: as many as it has
  RecordingPlace recording;
};

// The loop owns none of these. All of them outlive the loop and are thread-safe.
struct LoopDependencies {
  queue::QueueStore* queues = nullptr;
  sync::OptimisticSyncStore* sync = nullptr;
  actuator::Actuator* actuator = nullptr;
  Overrides* overrides = nullptr;
  DecisionLog* decision_log = nullptr;
  base::Clock* clock = nullptr;
  ActuationWorker::Token token;                           // while this agent leads
  std::function<std::vector<bus::RosterEntry>()> roster;  // of processors
  // Their heartbeats say what they hold back from full queues; empty: nothing is held back.
  std::function<std::vector<bus::RosterEntry>()> initiators;
  std::function<std::vector<std::string>()> jobs;  // see QueueWatch::Jobs
  // Receives what `desired` returns: after each decision, and again and again while there is none.
  // Called without a lock held, on the thread that decides or stops the loop; may be empty.
  OnDesired on_desired;
  telemetry::Registry* metrics = nullptr;  // null: nothing is measured
};

// Thread-safe, but each of Decide, LookAtQueues, Act and FillIds allows one caller at a time.
class TargetLoop {
 public:
  // `target` is one of the targets of `rules`.
  TargetLoop(const scaling::rules::Target& target, LoopOptions options, LoopDependencies deps,
             std::shared_ptr<const RulesInForce> rules);
  ~TargetLoop();  // Stop()s

  void Start() ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // The four steps. The threads that Start begins run all but FillIds.
  void Decide() ABSL_LOCKS_EXCLUDED(mu_);
  void LookAtQueues() ABSL_LOCKS_EXCLUDED(mu_);
  void Act() ABSL_LOCKS_EXCLUDED(mu_);
  // Call it on a thread that may wait for the sync store.
  absl::Status FillIds() { return ids_.Fill(); }

  // Whether this loop can continue for `target`. A change of its settings needs no new loop.
  bool IsFor(const scaling::rules::Target& target) const;
  void UseRules(std::shared_ptr<const RulesInForce> rules) ABSL_LOCKS_EXCLUDED(mu_);
  // A producer put work into a queue of the account; most of these queues belong to other targets.
  void OnWork(absl::string_view queue, int64_t items) ABSL_LOCKS_EXCLUDED(mu_);
  // Decides soon, because an input has changed.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string& name() const { return target_.id; }
  bool HasQueue(absl::string_view queue) const;
  v1::ScalingTarget Status() const ABSL_LOCKS_EXCLUDED(mu_);
  // nullopt: the loop has not observed anything yet.
  std::optional<Snapshot> snapshot() const ABSL_LOCKS_EXCLUDED(mu_);
  // The replicas that it wants, parked ones included; nullopt: it has not decided in this term.
  std::optional<int> desired() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether anybody is to start and stop the replicas that the last decision wants: this agent, or
  // another autoscaler.
  bool is_actuated() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The state of one term of this agent as the leader.
  struct Term {
    int64_t token = 0;
    absl::Duration since;
    absl::Time began;  // the same, as a time of day
    int standby = 0;   // as decided last
    std::optional<v1::ScalingDecision> last;
  };

  void TakeRules() ABSL_LOCKS_EXCLUDED(mu_);
  bool FollowLead() ABSL_LOCKS_EXCLUDED(mu_);
  void BeginTerm(int64_t token) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Time TimeOfDecision();
  // The statistics of the queues, with what initiators hold back from them. Empty: those of the
  // queues do not come.
  std::vector<scaling::policy::QueueReading> Readings() const;
  void PassOnAnnouncements(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  FleetSigns SignsAt(absl::Time now) const;
  bool IsTooEarly(const FleetSigns& signs,
                  const std::vector<scaling::policy::QueueReading>& queues) const;
  Weighed Weigh(const FleetSigns& signs, std::vector<scaling::policy::QueueReading> queues,
                int* live) ABSL_LOCKS_EXCLUDED(mu_);
  int UnseenReplicas(const FleetSigns& signs, int live, const Weighed& weighed) const;
  void Conclude(const Weighed& weighed) ABSL_LOCKS_EXCLUDED(mu_);
  void SetDesired(std::optional<int> desired) ABSL_LOCKS_EXCLUDED(mu_);
  scaling::rules::ActuatedBy actuated_by() const;
  void NoteActuated() ABSL_LOCKS_EXCLUDED(mu_);
  void NoteJudged(const v1::ScalingDecision& decision) ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<v1::ScalingDecision> LastJudged() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the agent itself gives the orders that it decides.
  bool CarriesOut() const;
  v1::ScalingAction ActionFor(const actuator::Order& order) const;
  void CountDecision(const v1::ScalingDecision& decision) const;
  void Publish(const v1::GetDecisionResponse& record) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteSeen(const scaling::policy::Observation& observation) ABSL_LOCKS_EXCLUDED(mu_);
  void OnAnswer(const std::string& decision, const absl::StatusOr<actuator::Outcome>& outcome)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::string HealthTroubles() const ABSL_LOCKS_EXCLUDED(mu_);

  const scaling::rules::Target
      target_;  // from the rules that the loop began with; its numbers may have changed since
  const LoopOptions options_;
  const LoopDependencies deps_;
  const telemetry::Counters<3> decisions_;

  QueueWatch watch_;
  ActuationWorker actuation_;
  DecisionIds ids_;

  // Used only by the thread that decides.
  std::shared_ptr<const RulesInForce> rules_;
  TargetPolicy policy_;
  FleetView fleet_;
  std::optional<Term> term_;
  absl::Time last_time_ = absl::InfinitePast();
  std::vector<std::string> let_go_first_;
  bool has_lost_reports_ = false;  // at the last look at the fleet
  int decided_ = 0;                // replicas of the last decision, standby included
  bool told_end_ = false;          // Stop has told that nothing is desired any more

  mutable base::Mutex mu_;
  std::shared_ptr<const RulesInForce> next_rules_ ABSL_GUARDED_BY(mu_);
  std::vector<scaling::policy::Announcement> announced_ ABSL_GUARDED_BY(mu_);
  std::optional<Snapshot> snapshot_ ABSL_GUARDED_BY(mu_);
  v1::ScalingDecision judged_ ABSL_GUARDED_BY(mu_);  // the last decision as of the last look
  std::optional<int> desired_ ABSL_GUARDED_BY(mu_);
  bool is_actuated_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status deciding_ ABSL_GUARDED_BY(mu_);          // why the loop cannot decide
  absl::Status heartbeat_status_ ABSL_GUARDED_BY(mu_);  // the replicas

  PeriodicThread queues_thread_;
  PeriodicThread actuation_thread_;
  PeriodicThread decides_thread_;
};

}  // namespace muster::scaling_agent
